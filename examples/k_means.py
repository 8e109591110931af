"""A picture in a few inks: k-means finds the colors that stand for all others best.

python examples/k_means.py [picture] --inks 12 --save inks.png
"""

import argparse

import numpy as np

import dala
from dala import media
from dala.gpu import compute
from dala.media.showcase import sample


@dala.function
def nearest(color, inks):
    """The number of the ink that is most like a color."""
    best = 0
    for k in range(len(inks)):
        if dala.distance(color, inks[k]) < dala.distance(color, inks[best]):
            best = k
    return best


@dala.kernel
def gather(image: dala.Image, inks: dala.Array[dala.vec3], out: dala.Out):
    """For each ink the sum of all pixels that it is nearest to, and how many they are."""
    p = image.pixel
    ink = nearest(dala.vec3(p.r, p.g, p.b), inks)
    for k, value in enumerate((p.r, p.g, p.b, 1.0)):
        out.add((ink, k), value)


@dala.kernel
def average(sums: dala.Array[dala.vec4], inks: dala.Array[dala.vec3]):
    """Each ink becomes the mean of its pixels; one that has none stays as it is."""
    return sums.rgb / sums.a if sums.a > 0.0 else inks


@dala.kernel
def is_settled(before: dala.Array[dala.vec3], after: dala.Array[dala.vec3]):
    return all(dala.distance(before[k], after[k]) < 0.0005 for k in range(len(before)))


def k_means(image, inks, limit=100):
    """Returns the inks after Lloyd's steps: until they rest, or so many."""
    image, inks = compute.from_numpy(image), compute.from_numpy(inks)
    sums = compute.buffer_zeros((inks.shape[0], 4), "f32")
    after, flag = compute.buffer_zeros(inks.shape, "f32"), compute.buffer_zeros((1,), "u8")
    steps = compute.pipeline()
    steps.add(kernel=gather, inputs=[image, inks], output=sums)
    steps.add(kernel=average, inputs=[sums, inks], output=after)
    steps.add(kernel=is_settled, inputs=[inks, after], output=flag)
    compute.until(steps.swap(inks, after), flag, every=5, limit=limit)
    return compute.read(inks)


@dala.kernel
def paint(image: dala.Image, inks: dala.Array[dala.vec3]):
    """The picture in these inks, and below it their swatches."""
    i, j = dala.position(2)
    height, width = image.shape
    if i >= height:
        return dala.rgba(inks[j * len(inks) // width])
    p = image[i, j]
    return dala.rgba(inks[nearest(dala.vec3(p.r, p.g, p.b), inks)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("picture", nargs="?", help="a picture; one is painted if none is given")
    options.add_argument("--inks", type=int, default=12)
    options.add_argument("--seed", type=int, default=1, help="of the pixels that it begins with")
    options.add_argument("--save", default="inks.png", help="the file to write")
    given = options.parse_args()

    picture = media.load(given.picture) if given.picture else sample.picture()
    image = picture[..., :3]
    height, width, _ = image.shape
    pixels = image.reshape(-1, 3).astype(np.float32) / 255
    start = np.random.default_rng(given.seed).choice(pixels, given.inks, replace=False)
    inks = k_means(image, start)
    inks = inks[np.argsort(inks @ (0.299, 0.587, 0.114))].astype(np.float32)
    media.save(paint(image, inks, shape=(height + height // 10, width, 3)), given.save)


if __name__ == "__main__":
    main()
