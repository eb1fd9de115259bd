# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's tf.data: fused decode and crop, bilinear resize with or without antialiasing."""

import common
import tensorflow as tf


def _resize(image, antialias):
    image = tf.image.resize(image, [common.SIZE] * 2, antialias=antialias)
    return tf.cast(tf.round(image), tf.uint8)


def batches(photos, antialias):
    tf.config.threading.set_inter_op_parallelism_threads(common.THREADS)
    tf.config.threading.set_intra_op_parallelism_threads(1)

    def sample(path):
        jpeg = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(jpeg),
            tf.zeros([0, 0, 4]),
            area_range=common.SCALE,
            aspect_ratio_range=common.RATIO,
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
            min_object_covered=0.1,
        )
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
        return tf.image.random_flip_left_right(_resize(image, antialias))

    paths = common.files(photos)
    dataset = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat()
    dataset = dataset.map(sample, num_parallel_calls=common.THREADS)
    options = tf.data.Options()
    options.threading.private_threadpool_size = common.THREADS
    for images in dataset.batch(common.BATCH).prefetch(4).with_options(options):
        yield len(images)


def crop(path, box, antialias):
    x, y, width, height = box
    window = [y, x, height, width]
    image = tf.image.decode_and_crop_jpeg(tf.io.read_file(path), window, channels=3)
    return _resize(image, antialias).numpy()
