/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment: carrying out the profile in the constructor, and telling later what is in force
 * and where it comes from. Nothing is set after the constructor.
 */
#ifndef NCCLSHIM_PRELOAD_SETTINGS_H
#define NCCLSHIM_PRELOAD_SETTINGS_H

#include <stdbool.h>

#include "shim/log/write/writer.h"
#include "shim/profile/profile.h"

/*
 * Set what the profile asks for, and the doors through which NCCL finds the shim (its env, profiler
 * and tuner plugin interfaces) where they are needed. Constructor only. false when memory is out:
 * nothing was set.
 */
bool settings_apply(const struct profile *p, bool log_wanted);

/* SETTING notes for all NCCL variables in force, and their digest in the header. */
void settings_note(struct log_writer *log);

/* The digest of the settings that must be the same on all ranks, as they are now. */
uint64_t settings_digest(void);

#endif
