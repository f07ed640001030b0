/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as one self-contained HTML page: no script from elsewhere, no font, no picture file. */
#ifndef NCCLSHIM_SHOW_HTML_H
#define NCCLSHIM_SHOW_HTML_H

#include <stdio.h>

#include "shim/show/report.h"

/* 0, or -1 when memory is out or the file can't be written. */
int report_html(const struct findings *f, const struct report_options *o, FILE *out);

#endif
