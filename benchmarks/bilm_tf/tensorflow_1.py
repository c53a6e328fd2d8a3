"""Makes `import tensorflow` give the original code the TensorFlow 1 that it was written for."""

import os
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow  # noqa: E402

tensorflow.get_logger().setLevel("ERROR")
tensorflow.compat.v1.disable_v2_behavior()
warnings.filterwarnings("ignore", "`tf.nn.rnn_cell.LSTMCell` is deprecated")
sys.modules["tensorflow"] = tensorflow.compat.v1
