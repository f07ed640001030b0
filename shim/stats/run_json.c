/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/run_json.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text_at(const json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));

    return text ? text : "";
}

static char *join_array(const json_t *array)
{
    size_t size = 1, i;
    char *text, *at;

    for (i = 0; i < json_array_size(array); i++)
        size += strlen(text_at(array, i)) + 1;
    at = text = malloc(size);
    if (!text)
        return NULL;
    *at = '\0';
    for (i = 0; i < json_array_size(array); i++)
        at += sprintf(at, "%s%s", i ? " " : "", text_at(array, i));
    return text;
}

static char *copy_text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? strdup(s) : NULL;
}

int run_json_read(const char *folder, struct run_json *r, struct error *e)
{
    json_error_t je;
    json_t *j, *v;
    char path[4096 + 256];

    memset(r, 0, sizeof(*r));
    r->exit_code = r->signal = -1;
    snprintf(path, sizeof(path), "%s/run.json", folder);
    if (access(path, R_OK) != 0)
        return 0;
    j = json_load_file(path, 0, &je);
    if (!j)
        return error_set(e, path, je.line, "not a run's description: %s", je.text);
    r->there = true;
    if (json_is_array(json_object_get(j, "command")))
        r->command = join_array(json_object_get(j, "command"));
    r->profile = copy_text(j, "profile");
    r->profile_path = copy_text(j, "profile_path");
    r->started_ns = (uint64_t)json_integer_value(json_object_get(j, "started_ns"));
    r->ended_ns = (uint64_t)json_integer_value(json_object_get(j, "ended_ns"));
    if ((v = json_object_get(j, "exit_code")))
        r->exit_code = (int)json_integer_value(v);
    if ((v = json_object_get(j, "signal")) && json_is_integer(v))
        r->signal = (int)json_integer_value(v);
    r->simulated = json_is_true(json_object_get(j, "simulated"));
    r->log_dir = copy_text(j, "log_dir");
    json_decref(j);
    return 0;
}

static void move_text(char **to, char **from)
{
    if (*to)
        return;
    *to = *from;
    *from = NULL;
}

void run_json_take(struct run *r, struct run_json *j)
{
    bool first = r->started_ns == 0;

    if (j->there) {
        move_text(&r->command, &j->command);
        move_text(&r->profile, &j->profile);
        move_text(&r->profile_path, &j->profile_path);
        if (first || j->started_ns < r->started_ns)
            r->started_ns = j->started_ns;
        if (first || !j->ended_ns || (r->ended_ns && j->ended_ns > r->ended_ns))
            r->ended_ns = j->ended_ns; /* 0: one node's still goes */
        if (j->exit_code > 0 || r->exit_code < 0)
            r->exit_code = j->exit_code; /* of several, one that failed */
        if (j->signal > 0 || r->signal < 0)
            r->signal = j->signal;
        r->simulated |= j->simulated;
    }
    free(j->command);
    free(j->profile);
    free(j->profile_path);
    free(j->log_dir);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

int run_json_nodes(const char *folder, struct loglist *nodes, struct error *e)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    char path[4096 + 512];
    int rc = d ? 0 : -1;

    nodes->paths = NULL;
    nodes->count = 0;
    while (rc == 0 && (entry = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s/run.json", folder, entry->d_name);
        if (entry->d_name[0] != '.' && access(path, R_OK) == 0)
            rc = loglist_add(nodes, folder, entry->d_name);
    }
    if (rc < 0)
        error_set(e, folder, 0, "can't be looked into: %s", strerror(errno));
    if (d)
        closedir(d);
    loglist_sort(nodes);
    return rc;
}
