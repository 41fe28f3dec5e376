"""``migrate``: SavedModels of TF 1.x become SavedModels of TF 2, each proved to answer as it
did.
"""
