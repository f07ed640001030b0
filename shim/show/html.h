/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports as one self-contained HTML page: no script, nothing from the network; plots are SVG in
 * the page. Light and dark by the reader's choice, narrow screens, print.
 */
#ifndef NCCLSHIM_SHOW_HTML_H
#define NCCLSHIM_SHOW_HTML_H

#include <stdio.h>

#include "shim/show/report.h"
#include "shim/show/sink.h"

/* 0, or -1 when memory is out or the file can't be written. */
int report_html(const struct overview *f, const struct report_options *o, FILE *out);

/* ---- parts of a page (html_page.c) ----------------------------------------------------------- */

/* Everything up to the first section; title is escaped. */
void html_begin(struct sink *s, const char *title, bool simulated);
void html_end(struct sink *s);
/* Text made harmless, with what HTML wants escaped. */
void html_text(struct sink *s, const char *text);
void html_textf(struct sink *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_section(struct sink *s, const char *title, const char *note);
void html_section_end(struct sink *s);
/* One line of the list at the top. */
void html_fact(struct sink *s, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Cells of a table row; numbers stand right. */
void html_td(struct sink *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_td_left(struct sink *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
