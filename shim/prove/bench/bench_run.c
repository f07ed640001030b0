/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/profile/profile.h"
#include "shim/prove/run/launch.h"

static uint64_t host_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- profile and shim ------------------------------------------------------------------------ */

static int find_profile(struct bench_result *b, struct error *e)
{
    const char *given = b->o.profile ? b->o.profile : getenv("NCCLSHIM_PROFILE");
    struct profile *p;
    int rc = 0;

    if (profile_load(given, &p, e) < 0)
        return -1;
    snprintf(b->profile, sizeof(b->profile), "%s", p->name);
    if (p->path[0] && !realpath(p->path, b->profile_path))
        rc = error_set(e, p->path, 0, "can't find the profile again: %s", strerror(errno));
    profile_free(p);
    return rc;
}

/*
 * The shim beside this command. Without a profile it is wanted for stamps alone, and its absence is
 * no failure unless they were asked for.
 */
static int find_shim(struct bench_result *b, struct launch *l, bool *found, struct error *e)
{
    static char self[PATH_MAX];
    static char *command[] = {self, NULL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    *found = launch_prepare(l, command, e) == 0;
    if (*found || (!b->profile_path[0] && b->o.stamps != BENCH_STAMPS_ON))
        return 0;
    return -1;
}

/* ---- one playing ----------------------------------------------------------------------------- */

static int play(struct bench_result *b, const struct bench_settings *set,
                const struct bench_plan *plan, const struct ranks_env *env,
                struct bench_share **share, int *fd, struct ranks_result *r, struct error *e)
{
    *share = bench_share_make(set, &b->w, plan, fd, e);
    if (!*share)
        return -1;
    return ranks_run(*share, *fd, env, r, e);
}

static int play_plain(struct bench_result *b, struct bench_settings *set, const struct launch *l,
                      struct error *e)
{
    struct ranks_env env = {.preload = b->profile_path[0] ? l->preload : NULL,
                            .profile = b->profile_path};
    struct bench_plan_options o = {
        .ranks = set->ranks, .calls = set->calls, .rows = true, .pass = true};

    set->rows = set->pass = true;
    set->events = true;
    set->phase = 1;
    if (bench_plan_make(&b->plan, &b->w, &o, e) < 0)
        return -1;
    return play(b, set, &b->plan, &env, &b->share, &b->fd, &b->ranks, e);
}

/* Remove the logs that we made, and their folder. */
static void remove_logs(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (is_log_file_name(entry->d_name))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    rmdir(folder);
}

/* Why there are no stamps is told, and is no failure: the times stand without them. */
static void no_stamps(struct bench_result *b, const char *why)
{
    snprintf(b->no_stamps, sizeof(b->no_stamps), "%s", why);
}

static int play_stamped(struct bench_result *b, struct bench_settings *set, const struct launch *l,
                        const char *log_dir, struct error *e)
{
    struct ranks_env env = {.preload = l->preload, .log_dir = log_dir,
                            .profile = b->profile_path[0] ? b->profile_path : "none"};
    struct bench_plan_options o = {.ranks = set->ranks, .calls = set->calls};
    struct bench_plan plan;
    struct bench_share *share = NULL;
    struct ranks_result r;
    int fd = -1, rc;

    set->pass = o.pass = b->w.sequence;
    set->rows = o.rows = !b->w.sequence;
    set->check = set->events = false;
    set->phase = 2;
    if (bench_plan_make(&plan, &b->w, &o, e) < 0)
        return -1;
    rc = play(b, set, &plan, &env, &share, &fd, &r, e);
    if (rc == 0 && r.end != RANKS_GOOD) { /* the times stand, but this must not pass unseen */
        b->ranks = r;
        error_set(&b->ranks.error, NULL, 0, "in the second playing, under stamps: %.600s",
                  r.error.text);
        no_stamps(b, b->ranks.error.text);
    } else if (rc == 0 && b->speaks &&
               bench_read_stamps(b, log_dir, share->out.warm_ns, e) < 0) {
        no_stamps(b, e->text);
    }
    bench_share_free(share, fd);
    bench_plan_free(&plan);
    return rc;
}

static bool wants_stamps(struct bench_result *b, bool shim)
{
    const char *log = getenv("NCCLSHIM_LOG");

    if (b->o.stamps == BENCH_STAMPS_OFF)
        return false;
    if (b->o.stamps == BENCH_STAMPS_AUTO && (!shim || (log && !strcmp(log, "off")))) {
        no_stamps(b, shim ? "NCCLSHIM_LOG is off" : "libncclshim.so is not beside the command");
        return false;
    }
    return true;
}

static int stamp(struct bench_result *b, struct bench_settings *set, const struct launch *l,
                 struct error *e)
{
    char base[LAUNCH_PATH_MAX], folder[LAUNCH_PATH_MAX];
    int fd = -1, rc;

    if (log_dir_default(base, sizeof(base)) < 0)
        return error_set(e, NULL, 0, "the name of the folder for logs is too long");
    fd = private_log_dir(base, folder, sizeof(folder), e);
    if (fd < 0)
        return -1;
    close(fd);
    rc = play_stamped(b, set, l, folder, e);
    remove_logs(folder);
    return rc;
}

/* ---- from samples to rows -------------------------------------------------------------------- */

static int conclude(struct bench_result *b, const struct bench_settings *set, struct error *e)
{
    uint32_t n = set->repeats;
    double *copy = malloc(n * sizeof(*copy));

    b->rows = calloc(b->plan.row_count + 1, sizeof(*b->rows));
    if (!copy || !b->rows) {
        free(copy);
        return error_set(e, NULL, 0, "out of memory");
    }
    for (uint32_t i = 0; i < b->plan.row_count; i++) {
        const struct bench_row_outcome *out = bench_share_row(b->share, i);
        struct bench_row_result *row = &b->rows[i];

        row->wrong = out->wrong;
        row->event_p50_ns = out->gpu_p50_ns;
        if (!b->share->out.timed)
            continue;
        row->ns = bench_ci_of(bench_share_samples(b->share, i), n);
        memcpy(copy, bench_share_samples(b->share, i), n * sizeof(*copy));
        row->p99_ns = out->gpu_p99_ns > 0 ? out->gpu_p99_ns : bench_quantile(copy, n, 0.99);
        row->p99_from = out->gpu_p99_ns > 0 ? "events" : "samples";
    }
    if (b->plan.turn_count && b->share->out.timed)
        b->pass = bench_ci_of(bench_share_samples(b->share, b->plan.row_count), n);
    free(copy);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int write_workload(const struct bench_result *b, struct error *e)
{
    const char *path = b->o.write_workload;
    FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;
    int rc;

    if (!out)
        return error_set(e, path, 0, "can't be written: %s", strerror(errno));
    rc = workload_write(&b->w, out);
    if (out != stdout && fclose(out) != 0)
        rc = -1;
    return rc < 0 ? error_set(e, path, 0, "can't be written: %s", strerror(errno)) : 1;
}

static int measure(struct bench_result *b, struct bench_settings *set, struct launch *l, bool shim,
                   struct error *e)
{
    b->started_ns = host_ns();
    if (play_plain(b, set, l, e) < 0 || conclude(b, set, e) < 0)
        return -1;
    if (b->ranks.end == RANKS_GOOD && wants_stamps(b, shim) && stamp(b, set, l, e) < 0)
        return -1;
    b->ended_ns = host_ns();
    return 0;
}

int bench_run(struct bench_result *b, const struct bench_options *o, struct error *e)
{
    struct bench_settings set;
    struct launch l;
    bool shim = false;
    int rc;

    memset(b, 0, sizeof(*b));
    memset(&set, 0, sizeof(set));
    memset(&l, 0, sizeof(l));
    b->o = *o;
    b->fd = -1;
    if (find_profile(b, e) < 0 || find_shim(b, &l, &shim, e) < 0)
        return -1;
    rc = bench_build(b, &set, e);
    if (rc == 0)
        rc = o->write_workload ? write_workload(b, e) : measure(b, &set, &l, shim, e);
    if (shim)
        launch_free(&l);
    return rc;
}

void bench_free(struct bench_result *b)
{
    bench_share_free(b->share, b->fd);
    bench_plan_free(&b->plan);
    workload_free(&b->w);
    free(b->rows);
    b->share = NULL;
    b->rows = NULL;
    b->fd = -1;
}
