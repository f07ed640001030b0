/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variables NCCL asked for, and what it got. Each pair of name and value is kept once, and
 * written once into each log as an ASKED note: at once when the log is open, else when it opens.
 * Any thread; no lock, no allocation: a fixed table, and what does not fit is not told.
 */
#ifndef NCCLSHIM_PLUGIN_ASKED_H
#define NCCLSHIM_PLUGIN_ASKED_H

#include <stdint.h>

struct log_writer;

/*
 * `value` NULL = it is not set. `comm` is the number + 1 of the communicator to which alone the
 * value was given, 0 for everybody's.
 */
void asked_note(const char *name, const char *value, uint32_t comm);

void asked_log_opened(struct log_writer *log);

#endif
