"""One lesson: the queue, the learner, its candidate version, the probes of notes."""
