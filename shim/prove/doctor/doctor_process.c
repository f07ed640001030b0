/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_process.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/prove/doctor/doctor_nccl.h"
#include "shim/show/json.h"
#include "shim/show/term.h"

static const char *variable(const struct doctor_process *p, const char *name)
{
    struct doctor_env env = {p->env ? p->env : "", p->env_bytes};

    return doctor_getenv(&env, name);
}

static bool preload_names_shim(const struct doctor_process *p)
{
    return doctor_list_has(variable(p, "LD_PRELOAD"), ": ", "libncclshim.so");
}

bool doctor_process_meant(const struct doctor_process *p)
{
    return p->env && (preload_names_shim(p) || variable(p, "NCCLSHIM_PROFILE") ||
                      variable(p, "NCCLSHIM_LOG_DIR"));
}

/* ---- why the shim is not there -------------------------------------------------------------- */

/* The path under which LD_PRELOAD names the shim; false when it is a bare name. */
static bool preloaded_path(const struct doctor_process *p, char *buf, size_t size)
{
    const char *list = variable(p, "LD_PRELOAD");

    while (list && *list) {
        size_t n = strcspn(list, ": ");
        if (n < size && n >= 14 && !strncmp(list + n - 14, "libncclshim.so", 14)) {
            snprintf(buf, size, "%.*s", (int)n, list);
            return buf[0] == '/';
        }
        list += n + (list[n] != '\0');
    }
    return false;
}

static void why_not(const struct doctor_process *p, const char *root, struct doctor_line *why,
                    struct doctor_line *advice)
{
    char path[1024], full[DOCTOR_PATH];
    const char *preload = variable(p, "LD_PRELOAD");
    struct stat st;

    if (p->secure || p->setid || p->capable) {
        doctor_say(why, "%s, so the loader ignores LD_PRELOAD",
                   p->capable ? "its program has file capabilities (setcap)"
                   : p->setid ? "its program is set-user-id or set-group-id"
                              : "it was started with more privileges than its parent had");
        doctor_say(advice, "take a copy of the program without them, or name the shim in "
                           "/etc/ld.so.preload of its container");
    } else if (p->static_exe) {
        doctor_say(why, "its program is linked statically: there is no loader that could put the "
                        "shim in front");
    } else if (p->foreign) {
        doctor_say(why, "its program is for 32 bits or another processor");
    } else if (p->musl) {
        doctor_say(why, "its program runs on musl, for which the shim is not built");
    } else if (!p->env) {
        doctor_say(why, "its environment can't be read");
    } else if (preload_names_shim(p)) {
        bool absolute = preloaded_path(p, path, sizeof(path));
        bool there =
            absolute && stat(doctor_path(full, root, "/proc/%d/root%s", p->pid, path), &st) == 0;
        doctor_say(why, "LD_PRELOAD names %s, which %s", absolute ? path : "it",
                   !absolute ? "the loader did not find"
                   : there   ? "the loader refused"
                             : "is not there for this process");
        doctor_say(advice, there ? "the server's first lines on stderr tell why"
                                 : "mount it into the container at the same path");
    } else if (preload && strstr(preload, "torch_memory_saver")) {
        doctor_say(why, "torch_memory_saver put itself in place of the LD_PRELOAD that was there");
        doctor_say(advice, "leave out --enable-memory-saver, or name the shim in "
                           "/etc/ld.so.preload of the container (docs/use/sglang.md)");
    } else if (doctor_process_meant(p)) {
        doctor_say(
            why,
            "ncclshim's variables are in its environment, and LD_PRELOAD without the shim (%s): "
            "it was taken out on the way, or never there",
            preload && *preload ? preload : "unset");
        doctor_say(advice, "sudo, su, Ray, mpirun, srun and containers filter it: docs/use/ has "
                           "the way round for each");
    } else {
        doctor_say(why, "it was not started under the shim");
        doctor_say(advice,
                   "ncclshim run -- COMMAND, or LD_PRELOAD=.../libncclshim.so in its environment");
    }
}

/* ---- what is said --------------------------------------------------------------------------- */

static void add_copies(struct doctor_finding *f, const struct doctor_process *p)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < p->copy_count; i++)
        json_array_append_new(list, json_text(p->copies[i]));
    doctor_fact(f, "pid", json_integer(p->pid));
    doctor_fact(f, "program", json_text(p->name));
    doctor_fact(f, "shim", json_boolean(p->shim));
    doctor_fact(f, "nccl", list);
    doctor_fact(f, "log", p->log ? json_text(p->log) : json_null());
}

static void judge_without(struct doctor_list *l, const struct doctor_process *p,
                          const struct doctor_view *v)
{
    bool bad = p->copy_count && (v->asked || doctor_process_meant(p));
    struct doctor_line why = {0}, advice = {0};
    struct doctor_finding *f;

    if (!p->copy_count && !p->cuda && !p->secure) {
        f = doctor_add(l, DOCTOR_OK, "process", "process %d %s: uses neither NCCL nor a GPU",
                       p->pid, p->name);
        add_copies(f, p);
        return;
    }
    why_not(p, v->root, &why, &advice);
    f = doctor_add(l,
                   bad             ? DOCTOR_BAD
                   : p->copy_count ? DOCTOR_WARN
                                   : DOCTOR_UNKNOWN,
                   "process", "process %d %s: %s, and the shim is not in it: %s", p->pid, p->name,
                   p->copy_count ? "has NCCL" : "has no NCCL yet", why.text);
    if (advice.n)
        doctor_advise(f, "%s", advice.text);
    add_copies(f, p);
}

/* A launcher has NCCL mapped and leaves the calls to its workers: then one of them has a log. */
static void judge_without_log(struct doctor_list *l, const struct doctor_process *p,
                              const struct doctor_view *v)
{
    const char *log = variable(p, "NCCLSHIM_LOG");
    struct doctor_finding *f;

    if (log && !strcmp(log, "off")) {
        f = doctor_add(l, DOCTOR_WARN, "process",
                       "process %d %s: the shim is in it, without a log: NCCLSHIM_LOG=off", p->pid,
                       p->name);
    } else if (!p->copy_count) {
        f = doctor_add(l, DOCTOR_OK, "process", "process %d %s: the shim is in it, NCCL is not",
                       p->pid, p->name);
    } else if (v->others_have_logs) {
        f = doctor_add(l, DOCTOR_OK, "process",
                       "process %d %s: the shim and NCCL are in it; it made no call", p->pid,
                       p->name);
    } else {
        f = doctor_add(
            l, DOCTOR_WARN, "process",
            "process %d %s: the shim and NCCL are in it, but it has no log: no call came "
            "through yet, or there was no room for one",
            p->pid, p->name);
        doctor_advise(f, "a server that is still loading has made none; else its stderr has a line "
                         "that begins with ncclshim:");
    }
    add_copies(f, p);
}

static enum doctor_level say_timing(const struct doctor_timing *t, unsigned moment_ms,
                                    struct doctor_line *s)
{
    char n[UNIT_SIZE], more[UNIT_SIZE];
    enum doctor_level level = DOCTOR_OK;

    unit_count(t->timed, n);
    unit_count(t->more_timed, more);
    if (t->more_timed)
        doctor_say(s, "is being timed: %s collectives in %u ms, %s so far", more, moment_ms, n);
    else if (t->more_issued && t->untimed == t->comms) {
        doctor_say(s, "makes calls that are counted and not timed (%s so far)",
                   unit_count(t->issued, n));
        level = DOCTOR_WARN;
    } else
        doctor_say(s, "rests: no collective in %u ms, %s so far", moment_ms, n);
    if (t->missed_all) {
        doctor_say(s, "; NCCL is mapped and no call comes through the shim");
        level = DOCTOR_BAD;
    } else if (t->missed) {
        doctor_say(s, "; %s calls were not intercepted", unit_count(t->missed, n));
        level = level < DOCTOR_WARN ? DOCTOR_WARN : level;
    }
    if (t->untimed && level == DOCTOR_OK)
        doctor_say(s, "; %u of %u communicators are counted only", t->untimed, t->comms);
    return level;
}

static void judge_timed(struct doctor_list *l, const struct doctor_process *p,
                        const struct doctor_timing *t, unsigned moment_ms)
{
    struct doctor_line s = {0};
    enum doctor_level level;
    struct doctor_finding *f;

    if (!t->opened) {
        f = doctor_add(l, DOCTOR_UNKNOWN, "process",
                       "process %d %s: the shim is in it; its log can't be read: %s", p->pid,
                       p->name, t->why);
        add_copies(f, p);
        return;
    }
    level = say_timing(t, moment_ms, &s);
    f = doctor_add(l, level, "process", "process %d %s: %s", p->pid, p->name, s.text);
    if (level == DOCTOR_BAD)
        doctor_advise(f, "its client binds names itself (RTLD_DEEPBIND, or NCCL linked "
                         "statically); docs/limits.md");
    add_copies(f, p);
    doctor_fact(f, "timed", json_u64(t->timed));
    doctor_fact(f, "timed_in_moment", json_u64(t->more_timed));
    doctor_fact(f, "issued_in_moment", json_u64(t->more_issued));
    doctor_fact(f, "not_intercepted", json_u64(t->missed));
}

static void judge_copies(struct doctor_list *l, const struct doctor_process *p)
{
    struct doctor_line s = {0};
    struct doctor_finding *f;

    for (unsigned i = 0; i < p->copy_count; i++)
        doctor_say_next(&s, ", ", "%s", p->copies[i]);
    if (p->copy_count > 1) {
        f = doctor_add(l, DOCTOR_WARN, "nccl-copies", "process %d has %u copies of NCCL: %s",
                       p->pid, p->copy_count, s.text);
        doctor_advise(f, "each communicator belongs to the copy that made it; settings hold for "
                         "both. One file for all: "
                         "VLLM_NCCL_SO_PATH or SGLANG_NCCL_SO_PATH = the one that torch has");
        doctor_fact(f, "pid", json_integer(p->pid));
    } else if (p->torch_nccl) {
        f = doctor_add(l, DOCTOR_OK, "nccl-copies",
                       "process %d has NCCL inside libtorch_cuda.so (static)", p->pid);
        doctor_fact(f, "pid", json_integer(p->pid));
    }
}

void doctor_process_judge(struct doctor_list *l, const struct doctor_process *p,
                          const struct doctor_timing *t, const struct doctor_view *v)
{
    struct doctor_finding *f;

    if (!p->readable) {
        f = doctor_add(l, DOCTOR_UNKNOWN, "process",
                       "process %d %s: can't be looked into (another user's?)", p->pid, p->name);
        doctor_advise(f, "sudo ncclshim doctor --pid %d", p->pid);
        return;
    }
    if (!p->shim)
        judge_without(l, p, v);
    else if (!p->log)
        judge_without_log(l, p, v);
    else
        judge_timed(l, p, t, v->moment_ms);
    judge_copies(l, p);
}
