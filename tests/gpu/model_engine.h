/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_TESTS_MODEL_ENGINE_H
#define HEARTH_TESTS_MODEL_ENGINE_H

/* The engine over the CUDA table, on models written to @path. */
void t_engine(const char *path);
void t_foreseen(const char *path);
/* model_failures.c: what fails, and that all else goes on. */
void t_failures(const char *path);

#endif
