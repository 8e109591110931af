"""Models on images and sound: what goes into them, and by `dala.ml.gpu` what comes out."""
