/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One error: a full sentence with the place it speaks of. The caller owns the struct (it holds no
 * pointers, nothing to free). No function of this project prints an error itself: the command
 * prints it as `ncclshim: FILE:LINE: SENTENCE`, the shared object as one line on stderr.
 */
#ifndef NCCLSHIM_BASE_ERROR_H
#define NCCLSHIM_BASE_ERROR_H

struct error {
    char file[512];     /* "" when the error is about no file */
    int line;           /* 0 when it is about no line */
    char text[768];     /* what is wrong and what to do; one sentence, no full stop needed */
};

/*
 * Fill *e (when e is not NULL) and return -1, so that a failing function can end with
 * `return error_set(...)`. A sentence too long for the struct is cut, never overrun.
 */
int error_set(struct error *e, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#ifdef __clang_analyzer__ /* it sees one file at a time, and would take 0 for possible */
#define error_set(...) ((error_set)(__VA_ARGS__), -1)
#endif

/* "FILE:LINE: SENTENCE", or the parts that are there. Returns buf. */
const char *error_str(const struct error *e, char *buf, unsigned long size);

#endif
