# SPDX-License-Identifier: Apache-2.0
# Completion of ncclshim for bash: source it, or put it into bash-completion's folder under the name ncclshim.
# Verbs and options are asked of the command itself, so that they are those of the installed version.

_ncclshim_verbs() {
    command ncclshim --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p'
}

# Long options where --help explains them: in the left column.
_ncclshim_options() {
    command ncclshim "$1" --help 2>/dev/null |
        sed -nE 's/^ +((-[a-z], )?--[a-z].*)$/\1/p' | sed -E 's/   *.*//' | grep -oE -- '--[a-z][a-z-]*'
    echo --help
}

_ncclshim_profiles() {
    command ncclshim profiles --json 2>/dev/null | sed -nE 's/^ *"name": "([^"]*)".*/\1/p'
    echo none
}

_ncclshim_values() {
    case $1 in
    -p | --profile) _ncclshim_profiles ;;
    --format) echo chrome csv json prometheus ;;
    --keep) echo all ;;
    --sort) echo total bytes calls p50 p99 max bus ;;
    --op) echo all_reduce all_gather reduce_scatter broadcast reduce all_to_all gather scatter send recv ;;
    --pid) ps -eo pid= 2>/dev/null ;;
    esac
}

_ncclshim() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} values i

    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_ncclshim_verbs) --help --version" -- "$word")
        return
    fi
    # What follows -- is another program's command line.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
        fi
    done
    values=$(_ncclshim_values "$before")
    if [[ -n $values ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_ncclshim_options "$verb" | sort -u)" -- "$word")
    elif [[ $verb == show || $verb == check ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_ncclshim_profiles)" -f -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}

complete -o filenames -F _ncclshim ncclshim
