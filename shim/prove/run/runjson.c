/* SPDX-License-Identifier: Apache-2.0 */
/* run.json: written and read. */
#include "shim/prove/run/runfolder.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/replace.h"
#include "shim/show/json.h"


/* As it is, since it is read back; what is no UTF-8 can't be. */
static json_t *text(const char *s)
{
    json_t *j = json_string(s);

    return j ? j : json_text(s);
}

static json_t *texts(char *const *list, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, text(list[i]));
    return array;
}

static void set_text(json_t *j, const char *key, const char *value)
{
    if (value)
        json_object_set_new(j, key, text(value));
}

/* What stands there, or an empty object. */
static json_t *read_json(const struct runfolder *r)
{
    int fd = openat(r->fd, "run.json", O_RDONLY | O_CLOEXEC);
    json_t *j = fd >= 0 ? json_loadfd(fd, 0, NULL) : NULL;

    if (fd >= 0)
        close(fd);
    if (json_is_object(j))
        return j;
    json_decref(j);
    return json_object();
}

/* A long run has thousands of them, and is described whenever one comes or goes. */
static void add_processes(json_t *j, const struct run_facts *f)
{
    json_t *list = json_object_get(j, "processes"), *seen = json_object(), *each;
    size_t i;

    if (!json_is_array(list)) {
        list = json_array();
        json_object_set_new(j, "processes", list);
    }
    json_array_foreach(list, i, each) if (json_is_string(each))
        json_object_set_new(seen, json_string_value(each), json_true());
    for (size_t k = 0; k < f->process_count; k++) {
        json_t *name = text(f->processes[k]);
        if (!json_object_get(seen, json_string_value(name)))
            json_array_append(list, name);
        json_object_set_new(seen, json_string_value(name), json_true());
        json_decref(name);
    }
    json_decref(seen);
}

static json_t *as_json(const struct runfolder *r, const struct run_facts *f)
{
    json_t *j = read_json(r);
    size_t arguments = 0;

    json_object_set_new(j, "version", json_integer(1));
    set_text(j, "made_by", f->made_by);
    while (f->command && f->command[arguments])
        arguments++;
    if (f->command || !json_object_get(j, "command"))
        json_object_set_new(j, "command", texts(f->command, arguments));
    set_text(j, "profile", f->profile);
    set_text(j, "profile_path", f->profile_path);
    if (f->started_ns)
        json_object_set_new(j, "started_ns", json_integer((json_int_t)f->started_ns));
    if (f->ended_ns)
        json_object_set_new(j, "ended_ns", json_integer((json_int_t)f->ended_ns));
    else
        json_object_del(j, "ended_ns");
    if (f->exit_code >= 0)
        json_object_set_new(j, "exit_code", json_integer(f->exit_code));
    if (f->signal)
        json_object_set_new(j, "signal", json_integer(f->signal));
    if (f->simulated || !json_object_get(j, "simulated"))
        json_object_set_new(j, "simulated", json_boolean(f->simulated));
    if (f->log_dir)
        json_object_set_new(j, "log_dir", text(f->log_dir));
    else
        json_object_del(j, "log_dir");
    add_processes(j, f);
    return j;
}

int runfolder_describe(const struct runfolder *r, const struct run_facts *f, struct error *e)
{
    struct replacement file;
    json_t *j = as_json(r, f);
    int rc = replace_begin(&file, r->fd, "run.json");

    if (rc == 0)
        rc = replace_end(&file, json_dumpfd(j, file.fd, JSON_INDENT(2)) == 0 &&
                                    write_all(file.fd, "\n", 1) == 0);
    json_decref(j);
    if (rc == 0)
        return 0;
    return error_set(e, r->path, 0, "can't write run.json: %s", strerror(errno));
}

int runfolder_recall(const struct runfolder *r, char *log_dir, size_t size, uint64_t *started_ns,
                     struct error *e)
{
    int fd = openat(r->fd, "run.json", O_RDONLY | O_CLOEXEC);
    const char *dir;
    json_error_t why;
    json_t *j;

    if (fd < 0)
        return error_set(e, r->path, 0, "can't read run.json: %s", strerror(errno));
    j = json_loadfd(fd, 0, &why);
    close(fd);
    if (!json_is_object(j)) {
        json_decref(j);
        return error_set(e, r->path, 0, "run.json, line %d: %s", why.line, why.text);
    }
    dir = json_string_value(json_object_get(j, "log_dir"));
    snprintf(log_dir, size, "%s", dir ? dir : "");
    *started_ns = (uint64_t)json_integer_value(json_object_get(j, "started_ns"));
    json_decref(j);
    return 0;
}
