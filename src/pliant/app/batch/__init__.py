"""Batches: a table of scenes, inputs, parameters and frames, solved chunk by chunk by any number of workers.

``jobs.toml`` (`pliant.app.batch.jobs`) is expanded to jobs, each a scene's document with where its clip goes. A job is
three kinds of tasks (`pliant.app.batch.tasks`), pure functions of files: *prepare* reads the scene and sets up its
solver, once, and keeps both on disk; *chunk* solves some frames and keeps them; *finish* joins the frames and writes
the clip. What is kept is called by the hash of all that it was made from (`pliant.app.batch.store`), so a batch that
was stopped goes on from there, and tasks hand on names, never points. `pliant.app.batch.dispatch` gives tasks to
workers: those of a Dask cluster (`pliant.app.batch.cluster`), or this process.

The same frames come out bit for bit, however they are divided: a frame of a blend depends on its weights only, a
simulation goes on from the state of the frame before, and workers use one thread of linear algebra each.
"""
