/* SPDX-License-Identifier: Apache-2.0 */
#include "test/gpu/cost/load.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int wrong(const char *what, const char *word)
{
    fprintf(stderr, "load: %s '%s' (see test/gpu/cost/load.h)\n", what, word);
    return 2;
}

static bool set_key(struct shape *s, const char *key, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (*end || end == text || value < 0)
        return false;
    if (!strcmp(key, "bytes"))
        s->bytes = (size_t)value;
    else if (!strcmp(key, "calls"))
        s->calls = (int)value;
    else if (!strcmp(key, "repeats"))
        s->repeats = (int)value;
    else if (!strcmp(key, "warmup"))
        s->warmup = (int)value;
    else if (!strcmp(key, "small"))
        s->small = (int)value;
    else if (!strcmp(key, "gap"))
        s->gap_ns = (uint64_t)(value * 1000);
    else if (!strcmp(key, "late"))
        s->late_ns = (uint64_t)(value * 1000);
    else if (!strcmp(key, "beside"))
        s->beside_ns = (uint64_t)(value * 1000);
    else if (!strcmp(key, "events"))
        s->events = value > 0;
    else
        return false;
    return true;
}

static int parse_shape(struct shape *s, char *word)
{
    char *rest = word, *part = strsep(&rest, ":"), *value;

    *s = (struct shape){.kind = KIND_GRAPH, .bytes = 43008, .calls = 122, .repeats = 50, .warmup = 5};
    snprintf(s->name, sizeof(s->name), "%s", part);
    while ((part = strsep(&rest, ":"))) {
        if (!strcmp(part, "graph")) {
            s->kind = KIND_GRAPH;
        } else if (!strcmp(part, "eager")) {
            s->kind = KIND_EAGER;
        } else if (!strcmp(part, "single")) {
            s->kind = KIND_SINGLE;
            s->events = true;
        } else {
            value = part;
            part = strsep(&value, "=");
            if (!value || !set_key(s, part, value))
                return wrong("no such key or value in a shape:", part);
        }
    }
    if (s->beside_ns && s->kind == KIND_GRAPH)
        return wrong("beside= is for eager shapes:", s->name);
    return s->calls > 0 && s->repeats > 0 ? 0 : wrong("nothing to do in shape", s->name);
}

int load_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){.ranks = 2, .limit_s = 60};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--one-gpu")) {
            o->one_gpu = true;
        } else if (!strcmp(argv[i], "--processes")) {
            o->processes = true;
        } else if (!strcmp(argv[i], "--ranks") && i + 1 < argc) {
            o->ranks = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--limit") && i + 1 < argc) {
            o->limit_s = atoi(argv[++i]);
        } else if (argv[i][0] == '-' || o->shape_count == MAX_SHAPES) {
            return wrong("can't use", argv[i]);
        } else if (parse_shape(&o->shapes[o->shape_count++], argv[i]) != 0) {
            return 2;
        }
    }
    if (o->ranks < 1 || o->ranks > MAX_RANKS || !o->shape_count)
        return wrong("needs 1 to 16 ranks and a shape:", "");
    return 0;
}

void load_meet(const struct rank *r)
{
    struct meeting *m = r->meeting;
    int mine = atomic_load(&m->round);

    if (atomic_fetch_add(&m->arrived, 1) + 1 == r->opt->ranks) {
        atomic_store(&m->arrived, 0);
        atomic_store(&m->round, mine + 1);
        return;
    }
    for (int i = 0; atomic_load_explicit(&m->round, memory_order_acquire) == mine; i++)
        if (i > 20000)
            sched_yield();
}

static void on_limit(int number)
{
    static const char text[] = "load: gave up: --limit is over\n";

    (void)number;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(4);
    _exit(3);
}

static size_t times_bytes(const struct shape *s)
{
    return (size_t)s->repeats * sizeof(double) + (size_t)s->calls * sizeof(double);
}

/* One mapping for all, made before any rank starts. */
static struct meeting *make_meeting(const struct options *o)
{
    size_t bytes = sizeof(struct meeting);
    struct meeting *m;
    char *next;

    for (int k = 0; k < o->shape_count; k++)
        bytes += times_bytes(&o->shapes[k]) * (size_t)o->ranks;
    m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return NULL;
    next = (char *)(m + 1);
    for (int i = 0; i < o->ranks; i++) {
        m->ranks[i] = (struct rank){.opt = o, .meeting = m, .number = i};
        for (int k = 0; k < o->shape_count; k++) {
            m->ranks[i].states[k].wall_us = (double *)next;
            m->ranks[i].states[k].event_us = (float *)(m->ranks[i].states[k].wall_us + o->shapes[k].repeats);
            next += times_bytes(&o->shapes[k]);
        }
    }
    return m;
}

static void *run(void *arg)
{
    struct rank *r = arg;

    load_rank(r, r->meeting);
    return NULL;
}

static int run_threads(const struct options *o, struct meeting *m)
{
    pthread_t threads[MAX_RANKS];

    alarm((unsigned)o->limit_s);
    for (int i = 0; i < o->ranks; i++)
        if (pthread_create(&threads[i], NULL, run, &m->ranks[i]) != 0)
            return 1;
    for (int i = 0; i < o->ranks; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* The first rank that fails takes the others with it. */
static int run_processes(const struct options *o, struct meeting *m)
{
    pid_t pids[MAX_RANKS];
    int status, failed = 0;

    for (int i = 0; i < o->ranks; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            alarm((unsigned)o->limit_s);
            run(&m->ranks[i]);
            exit(0);
        }
        if (pids[i] < 0)
            failed = 1;
    }
    for (int i = 0; i < o->ranks && !failed; i++)
        if (wait(&status) < 0 || status != 0)
            failed = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    for (int i = 0; i < o->ranks && failed; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    return failed;
}

int main(int argc, char **argv)
{
    struct options opt;
    struct meeting *m;

    if (load_options(&opt, argc, argv) != 0)
        return 2;
    signal(SIGALRM, on_limit);
    m = make_meeting(&opt);
    if (!m)
        return 1;
    return opt.processes ? run_processes(&opt, m) : run_threads(&opt, m);
}
