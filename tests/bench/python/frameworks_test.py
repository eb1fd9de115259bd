# SPDX-License-Identifier: Apache-2.0
"""Fields as arrays of JAX, and loaders under Lightning, where these are installed."""

import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

import support

HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_LIGHTNING = importlib.util.find_spec("lightning") is not None
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@unittest.skipUnless(HAS_JAX, "JAX is not installed")
class JaxTest(unittest.TestCase):
    def test_arrays_have_the_fields_values_and_outlive_the_batch(self):
        import jax

        with support.loader() as loader:
            for step, batch in enumerate(loader):
                images = jax.dlpack.from_dlpack(batch["image"])
                labels = jax.dlpack.from_dlpack(batch["label"])
                del batch
                self.assertEqual(images.shape, (4, support.SIDE, support.SIDE, 3))
                self.assertEqual(list(labels), [4 * step + n for n in range(4)])
                self.assertEqual(list(images[:, 0, 0, 0]), [4 * step + n for n in range(4)])


@unittest.skipUnless(HAS_LIGHTNING, "Lightning is not installed")
class LightningTest(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, str(EXAMPLES))
        self.addCleanup(sys.path.remove, str(EXAMPLES))

    def fit(self, batches, folder, resume=None, **options):
        """The labels and the first pixels that a model was given in `batches` batches."""
        import lightning
        import torch
        from lightning_data import Photographs

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.zeros(1))
                self.seen = []

            def training_step(self, batch, index):
                images, labels = batch
                self.seen += zip(labels.tolist(), (255 * images[:, 0, 0, 0]).round().tolist())
                return self.weight.sum()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        model = Model()
        data = Photographs(
            support.Images(), support.AS_THEY_ARE, batch_size=4, seed=3, workers=2, **options
        )
        trainer = lightning.Trainer(
            max_steps=batches,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, data, ckpt_path=resume)
        checkpoint = Path(folder) / f"{batches}.ckpt"
        trainer.save_checkpoint(checkpoint)
        return model.seen, checkpoint

    def test_a_run_goes_on_in_the_middle_of_an_epoch(self):
        with tempfile.TemporaryDirectory() as folder:
            whole, _ = self.fit(15, folder)  # three epochs of five batches
            self.assertEqual(len(whole), 60)
            for epoch in range(3):
                part = whole[20 * epoch : 20 * epoch + 20]
                self.assertEqual(sorted(label for label, _ in part), list(range(20)))
            for label, pixel in whole:
                self.assertEqual(pixel, label)
            begun, checkpoint = self.fit(7, folder)
            self.assertEqual(begun, whole[:28])
            rest, _ = self.fit(15, folder, resume=checkpoint)
            self.assertEqual(rest, whole[28:])


if __name__ == "__main__":
    unittest.main()
