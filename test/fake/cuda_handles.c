/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one lock, the set of valid handles, per-thread state, and the clock.
 *
 * Handles are looked up in a hash set rather than marked inside the object, so that a handle that
 * was destroyed, or never was one, is refused without touching its memory.
 */
#include "test/fake/cuda_sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct slot {
    const void *handle;
    enum kind kind;
};

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static size_t nslots, used;

/* ---- memory ---- */

void *sim_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "simulated CUDA driver: out of host memory\n");
        abort();
    }
    return memory;
}

void *sim_grow(void *old, size_t n, size_t size)
{
    void *memory = reallocarray(old, n, size);
    if (memory == NULL) {
        fprintf(stderr, "simulated CUDA driver: out of host memory\n");
        abort();
    }
    return memory;
}

/* ---- threads ---- */

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static __thread struct thread *this_thread;

static void end_thread(void *arg)
{
    struct thread *thread = arg;
    this_thread = thread;
    if (thread->nown > 0) {
        sim_lock();
        for (size_t i = 0; i < thread->nown; i++) {
            if (thread->own_streams[i]->alive) {
                stream_destroy(thread->own_streams[i]);
            }
            stream_unref(thread->own_streams[i]);
        }
        sim_unlock();
    }
    this_thread = NULL;
    free(thread->own_streams);
    free(thread->stack);
    free(thread->later);
    free(thread);
}

static void make_key(void)
{
    pthread_key_create(&thread_key, end_thread);
}

struct thread *sim_thread(void)
{
    static atomic_uint_fast64_t ids;
    if (this_thread == NULL) {
        pthread_once(&thread_once, make_key);
        this_thread = sim_alloc(sizeof *this_thread);
        this_thread->id = atomic_fetch_add(&ids, 1) + 1;
        this_thread->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        pthread_setspecific(thread_key, this_thread);
    }
    return this_thread;
}

/* ---- lock ---- */

void sim_lock(void)
{
    struct thread *thread = sim_thread();
    pthread_mutex_lock(&the_lock);
    thread->lock_depth++;
}

void sim_unlock(void)
{
    struct thread *thread = sim_thread();
    thread->lock_depth--;
    pthread_mutex_unlock(&the_lock);
    while (thread->nlater > 0) {
        struct later *list = thread->later;
        size_t n = thread->nlater;
        thread->later = NULL;
        thread->nlater = 0;
        for (size_t i = 0; i < n; i++) {
            list[i].fn(list[i].arg);
        }
        free(list);
    }
}

void sim_later(void (*fn)(void *), void *arg)
{
    struct thread *thread = sim_thread();
    if (thread->lock_depth == 0) {
        fn(arg);
        return;
    }
    thread->later = sim_grow(thread->later, thread->nlater + 1, sizeof *thread->later);
    thread->later[thread->nlater++] = (struct later){fn, arg};
}

/* ---- handles ---- */

static size_t place(const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle >> 4;
    return (size_t)((bits * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (nslots - 1);
}

static void insert(const void *handle, enum kind kind)
{
    size_t i = place(handle);
    while (slots[i].handle != NULL) {
        i = (i + 1) & (nslots - 1);
    }
    slots[i] = (struct slot){handle, kind};
}

void handle_add(const void *handle, enum kind kind)
{
    if (used * 2 >= nslots) {
        struct slot *old = slots;
        size_t n = nslots;
        nslots = n == 0 ? 1024 : 2 * n;
        slots = sim_alloc(nslots * sizeof *slots);
        for (size_t i = 0; i < n; i++) {
            if (old[i].handle != NULL) {
                insert(old[i].handle, old[i].kind);
            }
        }
        free(old);
    }
    insert(handle, kind);
    used++;
}

bool handle_is(const void *handle, enum kind kind)
{
    if (handle == NULL || nslots == 0) {
        return false;
    }
    for (size_t i = place(handle); slots[i].handle != NULL; i = (i + 1) & (nslots - 1)) {
        if (slots[i].handle == handle) {
            return slots[i].kind == kind;
        }
    }
    return false;
}

void handle_drop(const void *handle)
{
    size_t hole, next;
    if (nslots == 0) {
        return;
    }
    for (hole = place(handle); slots[hole].handle != handle; hole = (hole + 1) & (nslots - 1)) {
        if (slots[hole].handle == NULL) {
            return;
        }
    }
    /* Close the gap, so that look-ups may stop at the first free slot. */
    for (next = (hole + 1) & (nslots - 1); slots[next].handle != NULL;
         next = (next + 1) & (nslots - 1)) {
        size_t home = place(slots[next].handle);
        if (((next - home) & (nslots - 1)) >= ((next - hole) & (nslots - 1))) {
            slots[hole] = slots[next];
            hole = next;
        }
    }
    slots[hole].handle = NULL;
    used--;
}

/* ---- time ---- */

uint64_t sim_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void sim_pace(uint64_t time_ns)
{
    struct timespec until = {(time_t)(time_ns / 1000000000), (long)(time_ns % 1000000000)};
    if (!sim_env()->pace || time_ns <= sim_now()) {
        return;
    }
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

bool sim_is_past(uint64_t time_ns)
{
    return !sim_env()->pace || time_ns <= sim_now();
}
