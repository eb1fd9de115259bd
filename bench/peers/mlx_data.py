# SPDX-License-Identifier: Apache-2.0
"""mlx-data, in threads."""

import common
import mlx.data


def batches(photos):
    paths = [{"file": path.encode()} for path in common.files(photos) * common.REPEATS]
    buffer = mlx.data.buffer_from_vector(paths)
    size = (common.SIZE, common.SIZE)
    while True:
        stream = buffer.shuffle().to_stream().load_image("file", output_key="image")
        stream = stream.image_random_area_crop("image", common.SCALE, common.RATIO)
        stream = stream.image_resize("image", *size).image_random_h_flip("image", 0.5)
        for batch in stream.batch(common.BATCH).prefetch(4, common.THREADS):
            yield len(batch["image"])
