/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/show/json.h"

/* Bytes that two pieces share, so that what stands on the border is in one of them as a whole. */
#define OVERLAP 256

/* One line or piece of it into buf; how many bytes of it the next piece begins with again, in
 * *again. */
static bool next_piece(FILE *in, char *buf, size_t *again)
{
    size_t n = *again;
    int c = EOF;

    *again = 0;
    while (n + 1 < DOCTOR_SERVER_LINE && (c = getc_unlocked(in)) != EOF && c != '\n')
        buf[n++] = c ? (char)c : ' '; /* a zero would hide what follows */
    buf[n] = '\0';
    if (c == EOF && !n)
        return false;
    if (n + 1 == DOCTOR_SERVER_LINE && c != '\n')
        *again = OVERLAP;
    return true;
}

void doctor_server_read(struct doctor_server *s, FILE *in)
{
    char *buf = malloc(DOCTOR_SERVER_LINE);
    size_t again = 0;

    memset(s, 0, sizeof(*s));
    s->custom = s->tensor_parallel = -1;
    while (buf && next_piece(in, buf, &again)) {
        doctor_server_line(s, buf);
        if (again)
            memmove(buf, buf + strlen(buf) - again, again);
        if (feof(in))
            break;
    }
    free(buf);
}

/* ---- sentences ------------------------------------------------------------------------------ */

static void sentence(const struct doctor_said *x, struct doctor_line *s)
{
    const char *of = x->group[0] ? " of group " : "";

    if (!strcmp(x->topic, "server-bypass"))
        doctor_say(s, "%s takes all-reduces%s%s away from NCCL: they are neither timed nor tuned",
                   x->subject, of, x->group);
    else if (!strcmp(x->topic, "server-fusion"))
        doctor_say(s, "%s bypasses NCCL: what it takes is neither timed nor tuned", x->subject);
    else if (!strcmp(x->topic, "server-all-to-all"))
        doctor_say(s, "all-to-all of the experts goes through %s, not through NCCL", x->subject);
    else if (!strcmp(x->topic, "server-strategy"))
        doctor_say(s, "TensorRT-LLM's all-reduce strategy is %s: %s", x->subject,
                   !strcmp(x->subject, "AUTO")
                       ? "own kernels where GPUs have NVLink, NCCL elsewhere"
                       : "own kernels, not NCCL");
    else if (!strcmp(x->topic, "server-preload"))
        doctor_say(
            s, "%s replaces LD_PRELOAD in the processes that call NCCL: the shim is not in them",
            x->subject);
    else if (!strcmp(x->topic, "server-custom-off"))
        doctor_say(s, "the server's custom all-reduce is off %s", x->subject);
    else if (!strcmp(x->group, "TensorRT-LLM"))
        doctor_say(s, "TensorRT-LLM's all-reduce strategy is %s", x->subject);
    else
        doctor_say(s, "all-reduces%s%s may go through %s, which is NCCL", of, x->group, x->subject);
}

static void tell_default(struct doctor_list *l, const struct doctor_server *s, const char *file)
{
    struct doctor_finding *f;
    bool bypass = false;

    for (unsigned i = 0; i < s->count; i++)
        bypass |= !strcmp(s->said[i].topic, "server-bypass");
    if (s->named || bypass || s->tensor_parallel == 1)
        return;
    if (s->custom == 1) {
        doctor_add(
            l, DOCTOR_OK, "server-nccl",
            "custom all-reduce is off: all-reduces go through NCCL, but for what stands above");
    } else if (s->custom == 0) {
        f = doctor_add(
            l, DOCTOR_WARN, "server-bypass",
            "custom all-reduce is on, and no line says that it gave up: with two GPUs, or NVLink, "
            "it takes the small all-reduces away from NCCL");
        doctor_advise(f, "--disable-custom-all-reduce");
    } else if (s->count == 0) {
        f = doctor_add(l, DOCTOR_UNKNOWN, "server-log",
                       "no line of %s names an all-reduce path (%" PRIu64 " lines)", file,
                       s->lines);
        doctor_advise(f, "the lines come when the server starts, at level INFO: vLLM's, SGLang's, "
                         "TensorRT-LLM's and LMDeploy's are known");
    }
}

void doctor_server_tell(struct doctor_list *l, const struct doctor_server *s, const char *file)
{
    for (unsigned i = 0; i < s->count; i++) {
        const struct doctor_said *x = &s->said[i];
        struct doctor_line text = {0};
        struct doctor_finding *f;
        sentence(x, &text);
        f = doctor_add(l, x->level, x->topic, "%s", text.text);
        if (x->advice)
            doctor_advise(f, "%s%s", x->level == DOCTOR_OK ? "" : "off: ", x->advice);
        doctor_fact(f, "subject", json_text(x->subject));
        doctor_fact(f, "group", x->group[0] ? json_text(x->group) : json_null());
        doctor_fact(f, "lines", json_u64(x->lines));
    }
    if (s->overflow)
        doctor_add(l, DOCTOR_UNKNOWN, "server-log", "%s names more paths than are listed here",
                   file);
    tell_default(l, s, file);
}

int doctor_server_judge(struct doctor_list *l, const char *path, struct error *e)
{
    struct doctor_server *s = malloc(sizeof(*s));
    FILE *in = fopen(path, "re");
    struct stat st;
    int rc = 0;

    if (!s)
        rc = error_set(e, path, 0, "out of memory");
    else if (!in)
        rc = error_set(e, path, 0, "can't be opened: %s", strerror(errno));
    else if (fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode))
        rc = error_set(e, path, 0,
                       "is a folder; --server-log takes the file that the server's output went to");
    if (rc == 0) {
        doctor_server_read(s, in);
        if (ferror(in))
            rc = error_set(e, path, 0, "can't be read: %s", strerror(errno));
        else
            doctor_server_tell(l, s, path);
    }
    if (in)
        fclose(in);
    free(s);
    return rc;
}
