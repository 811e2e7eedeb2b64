/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_BASE_VERSION_H
#define HEARTH_BASE_VERSION_H

#ifndef HEARTH_VERSION  /* the build says it (tools/build.mk); a test's own build need not */
#define HEARTH_VERSION "?"
#endif

#endif
