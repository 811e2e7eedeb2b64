/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_TESTS_MODEL_ENGINE_H
#define HEARTH_TESTS_MODEL_ENGINE_H

/* The engine over the CUDA table, on models written to @path. */
void t_engine(const char *path);
void t_foreseen(const char *path);

#endif
