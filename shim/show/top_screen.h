/* SPDX-License-Identifier: Apache-2.0 */
/* `top` on a terminal: draws frames until the user leaves. */
#ifndef NCCLSHIM_SHOW_TOP_SCREEN_H
#define NCCLSHIM_SHOW_TOP_SCREEN_H

#include "shim/base/error.h"
#include "shim/show/top_text.h"

/* interval_ms between looks; frames = 0: until q. 0, or -1 with *e filled. */
int top_screen(struct live *l, int interval_ms, unsigned frames, struct error *e);

#endif
