"""The API of TensorFlow Serving: its messages (`schema`, `messages`), tensors in them
(`tensors`) and the records of warm-up requests (`warmup_records`).
"""
