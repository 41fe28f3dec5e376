"""Models of TF 1.x and Keras 2 become models of today, with a proof for each (`migrate`)."""
