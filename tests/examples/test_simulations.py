"""The examples that simulate, each beside the same in NumPy and f64."""

import game_of_life
import n_body
import noise
import numpy as np
import waves

from dala.gpu import compute


def philox(seed, x, y):
    """The first words of Philox 4×32-10, as Salmon et al. define them."""
    word = np.uint64(0xFFFFFFFF)
    c = [np.asarray(part).astype(np.int64).astype(np.uint64) & word for part in (x, y, 0, 0)]
    k = [np.uint64(seed), np.uint64(0)]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        high_a, high_b = a >> np.uint64(32), b >> np.uint64(32)
        c = [high_b ^ c[1] ^ k[0], b & word, high_a ^ c[3] ^ k[1], a & word]
        k = [(k[0] + np.uint64(0x9E3779B9)) & word, (k[1] + np.uint64(0xBB67AE85)) & word]
    return c[0]


def perlin(seed, x, y):
    left, top = np.floor(x), np.floor(y)
    slopes = []
    for down in (0, 1):
        for right in (0, 1):
            turn = 2 * np.pi * (philox(seed, left + right, top + down) >> np.uint64(8)) / (1 << 24)
            away = x - left - right, y - top - down
            slopes.append(np.cos(turn) * away[0] + np.sin(turn) * away[1])
    u, v = (6 * t**5 - 15 * t**4 + 10 * t**3 for t in (x - left, y - top))
    above = slopes[0] + u * (slopes[1] - slopes[0])
    below = slopes[2] + u * (slopes[3] - slopes[2])
    return above + v * (below - above)


def test_noise_is_that_of_perlin_in_octaves(device):
    found = noise.noise(seed=7, scale=2.5, shape=(40, 60))
    i, j = np.mgrid[:40, :60]
    x, y = (2.5 * t.astype(np.float32) / np.float32(40) for t in (j, i))
    octaves = [0.5 ** (k + 1) * perlin(7 + k, x * 2.0**k, y * 2.0**k) for k in range(noise.OCTAVES)]
    np.testing.assert_allclose(found, sum(octaves), atol=2e-5)
    assert found.std() > 0.05


def test_what_lives_is_what_conway_says(device):
    born = np.random.default_rng(3).random((33, 47)) < 0.3
    cells = compute.from_numpy(born.astype(np.float32))
    for _ in range(20):
        cells = game_of_life.step(cells)
        around = sum(
            np.roll(born, (i, j), (0, 1)).astype(int) for i in (-1, 0, 1) for j in (-1, 0, 1)
        )
        born = (around == 3) | (born & (around == 4))
    assert 50 < born.sum() < 700
    np.testing.assert_array_equal(compute.read(cells) == 1, born)


def test_waves_are_those_of_the_difference_equation(device):
    height, width, count = 120, 160, 251
    water, steps = waves.waves((height, width))
    compute.repeat(steps, count)

    y, x = np.mgrid[:height, :width]
    wall = (abs(x - waves.WALL) < 2) & (abs(abs(y - height // 2) - waves.APART) > waves.SLIT)
    near = np.clip(np.minimum.reduce([x, width - 1 - x, y, height - 1 - y]) / 40, 0, 1)
    tired = 0.06 * (1 - near * near * (3 - 2 * near))
    now = before = np.zeros((height, width))
    for time in range(1, count + 1):
        wide = np.pad(now, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        later = now + (1 - tired) * (now - before) + 0.24 * (around - 4 * now)
        later += 0.08 * np.exp(-((x - 50) ** 2) / 8) * np.sin(0.3 * time)
        now, before = np.where(wall, 0, later), now
    assert np.abs(now[:, waves.WALL + 5 :]).max() > 0.1, "nothing has passed the slits"
    np.testing.assert_allclose(compute.read(water), now, atol=1e-4)


def pulls(positions, masses):
    away = positions[None] - positions[:, None]
    near = (away**2).sum(axis=2) + n_body.SOFTENING**2
    return (masses[None, :, None] * away / near[..., None] ** 1.5).sum(axis=1)


def energy(positions, velocities, masses):
    away = positions[None] - positions[:, None]
    near = np.sqrt((away**2).sum(axis=2) + n_body.SOFTENING**2)
    pairs = masses[None] * masses[:, None] / near
    return (masses * (velocities**2).sum(axis=1)).sum() / 2 - (pairs.sum() - pairs.trace()) / 2


def test_stars_move_as_in_double_precision(device):
    bodies = n_body.encounter(100, seed=1)
    x, v, steps = n_body.simulation(*bodies)
    compute.repeat(steps, 60)
    positions, velocities, masses = (item.astype(np.float64) for item in bodies)
    velocities += n_body.STEP / 2 * pulls(positions, masses)
    for _ in range(60):
        positions += n_body.STEP * velocities
        velocities += n_body.STEP * pulls(positions, masses)
    np.testing.assert_allclose(compute.read(x), positions, atol=2e-4)
    np.testing.assert_allclose(compute.read(v), velocities, atol=2e-3)


def test_no_energy_is_lost(device):
    positions, velocities, masses = bodies = n_body.encounter(60, seed=2)
    x, v, steps = n_body.simulation(*bodies)
    compute.repeat(steps, 400)
    after, half = compute.read(x).astype(np.float64), compute.read(v).astype(np.float64)
    # Velocities are half a step ahead.
    at_rest = half - n_body.STEP / 2 * pulls(after, masses)
    before = energy(positions.astype(np.float64), velocities.astype(np.float64), masses)
    assert abs(energy(after, at_rest, masses) / before - 1) < 0.01
