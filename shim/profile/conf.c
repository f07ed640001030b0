/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/profile/reader.h"

static int add_line(struct conf_file *f, char *text, int number)
{
    char *equals;
    struct conf_line *l;

    text[strcspn(text, "\n")] = '\0';
    equals = strchr(text, '=');
    if (*text == '#' || !equals || equals == text)
        return 0;
    l = GROW(f->lines, f->count);
    if (!l)
        return -1;
    l->name = strndup(text, (size_t)(equals - text));
    l->value = strdup(equals + 1);
    l->line = number;
    return l->name && l->value ? 0 : -1;
}

static int read_one(struct conf_files *c, char *path)
{
    FILE *in = path ? fopen(path, "re") : NULL;
    struct conf_file *f = &c->files[c->count];
    char *text = NULL;
    size_t room = 0;
    int rc = 0;

    if (!in) {
        free(path);
        return path ? 0 : -1;
    }
    c->count++;
    f->path = path;
    for (int n = 1; !rc && getline(&text, &room, in) > 0; n++)
        rc = add_line(f, text, n);
    free(text);
    fclose(in);
    return rc;
}

int conf_read(const char *conf_file, const char *home, const char *system, struct conf_files *out)
{
    char *first = NULL;
    int rc = 0;

    memset(out, 0, sizeof(*out));
    if (conf_file && *conf_file)
        rc = read_one(out, strdup(conf_file));
    else if (home && *home)
        rc = asprintf(&first, "%s/.nccl.conf", home) < 0 ? -1 : read_one(out, first);
    if (!rc)
        rc = read_one(out, strdup(system));
    if (rc)
        conf_free(out);
    return rc;
}

void conf_free(struct conf_files *c)
{
    for (size_t i = 0; i < c->count; i++) {
        for (size_t j = 0; j < c->files[i].count; j++) {
            free(c->files[i].lines[j].name);
            free(c->files[i].lines[j].value);
        }
        free(c->files[i].lines);
        free(c->files[i].path);
    }
    memset(c, 0, sizeof(*c));
}
