"""Models as folders: a graph in ONNX beside its tokenizer, run by onnxruntime on one core and one text at a time.

The packaged sentence encoder is such a folder, `minilm`, and is opened like any other.
"""
