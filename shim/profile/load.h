/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading for `check`: all errors of all keys instead of the first one, and without judging the
 * settings against one another (check_settings does that).
 */
#ifndef NCCLSHIM_PROFILE_LOAD_H
#define NCCLSHIM_PROFILE_LOAD_H

#include "shim/profile/profile.h"

/*
 * As profile_load, but `report` is called for each error, in the order in which they are found.
 * After an error of a file's shape (no '=', a broken header, ...) nothing more is read. 0, or -1
 * when there was any error (*out is then NULL).
 */
int profile_read(const char *name_or_path, struct profile **out,
                 void (*report)(void *user, const struct error *e), void *user);

#endif
