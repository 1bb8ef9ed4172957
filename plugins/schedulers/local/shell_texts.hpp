// What the batch system of this one machine is made of: a few lines of sh and one directory of
// small files.
//
//   NAME.pid    the runner of an allocation: its process, that process's start, uptime at its
//   start, walltime NAME.ended  the same process, why it ended (completed, failed, timeout,
//   cancelled, lost), exit code
//
// A process counts as the one in the file only with the same start, so a number that was given away
// again is no pilot.  All lies in /tmp unless configured, because process numbers mean something on
// this machine only.
#pragma once

namespace hpcbatch::local {

/// In front of every text below; `$hb_dir` is the directory, or empty for the one in /tmp.
inline constexpr const char* kCommon = R"sh(
[ -n "$hb_dir" ] || hb_dir=/tmp/hpcbatch-local-$(id -u)
hb_directory() {
  [ -d "$hb_dir" ] || mkdir -p -m 700 "$hb_dir" || exit 3
  if [ -L "$hb_dir" ] || ! [ -O "$hb_dir" ]; then
    echo "$hb_dir belongs to somebody else; set another 'directory' for the scheduler 'local'" >&2
    exit 3
  fi
}
# Of process $1: state, session and start; fails where there is no such process of ours.
hb_stat() {
  [ -O "/proc/$1" ] || return 1
  { read -r hb_line < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${hb_line##*) }
  hb_state=$1 hb_session=$4 hb_start=${20}
}
hb_is_alive() { hb_stat "$1" && [ "$hb_start" = "$2" ] && [ "$hb_state" != Z ]; }
# Kills all processes of session $1 but $2, and those that they start meanwhile.
hb_sweep() {
  hb_round=0
  while [ "$hb_round" -lt 50 ]; do
    hb_round=$((hb_round + 1)) hb_found=
    for hb_file in /proc/[0-9]*; do
      [ "${hb_file#/proc/}" != "$2" ] && hb_stat "${hb_file#/proc/}" || continue
      [ "$hb_session" = "$1" ] && [ "$hb_state" != Z ] || continue
      kill -KILL "${hb_file#/proc/}" 2>/dev/null && hb_found=1
    done
    [ -n "$hb_found" ] || return 0
  done
}
# Whether process $1 is there, whosever it is; one that nobody has reaped yet is not.
hb_lives() {
  { read -r hb_line < "/proc/$1/stat"; } 2>/dev/null || return 1
  hb_line=${hb_line##*) }
  [ "${hb_line%% *}" != Z ]
}
# Kills what the tasks of allocation $1 left where both its pilot and the pilot's keeper were killed: they cannot any more.
# Its session is the dead pilot's.  What a task handed to a batch system, or to a server, is in another's.
hb_sweep_tasks() {
  hb_round=0
  while [ "$hb_round" -lt 50 ]; do
    hb_round=$((hb_round + 1)) hb_found=
    for hb_file in $(grep -lsz "^HPCBATCH_PILOT=$1[.]" /proc/[0-9]*/environ); do
      hb_file=${hb_file%/environ}
      hb_stat "${hb_file#/proc/}" && [ "$hb_state" != Z ] && ! hb_lives "$hb_session" || continue
      kill -KILL "${hb_file#/proc/}" 2>/dev/null && hb_found=1
    done
    [ -n "$hb_found" ] || return 0
  done
}
# The marks here that $1 names.  A task can put anything in their place: who opened a FIFO would wait for ever.
hb_marks() {
  find . -maxdepth 1 -type f -size -2 -name "$1" ! -name '*[!A-Za-z0-9._-]*' 2>/dev/null
}
hb_uptime() { read -r hb_now hb_rest < /proc/uptime; hb_now=${hb_now%%.*}; }
)sh";

/// The runner prints its number only once it stands in its file: who has the number can be found
/// again.  A name that was started before gives the number of that one.
inline constexpr const char* kBegin = R"sh(
hb_directory
hb_stat $$; hb_uptime; hb_began=$hb_now
set -C
if ! { echo "$$ $hb_start $hb_began $hb_walltime" > "$hb_dir/$hb_name.pid"; } 2>/dev/null; then
  [ -f "$hb_dir/$hb_name.pid" ] && { read -r hb_first hb_rest < "$hb_dir/$hb_name.pid"; } || exit 3
  echo "$hb_first"
  exit 0
fi
set +C
hb_child= hb_cancelled=
trap 'hb_cancelled=1; [ -z "$hb_child" ] || kill -TERM "$hb_child" 2>/dev/null' TERM
echo $$
exec >> "$hb_log" 2>&1 < /dev/null
)sh";

/// `timeout` keeps the walltime and, after any TERM, sends KILL 5 s later; `$@` is the pilot.
inline constexpr const char* kEnd = R"sh(
hb_code=143
if [ -z "$hb_cancelled" ]; then
  timeout --foreground -k 5 "$hb_walltime" "$@" &
  hb_child=$!
  [ -z "$hb_cancelled" ] || kill -TERM "$hb_child"
  wait "$hb_child"; hb_code=$?
  # A signal ends the wait, not the child.
  while kill -0 "$hb_child" 2>/dev/null; do wait "$hb_child"; hb_code=$?; done
fi
hb_uptime
if [ -n "$hb_cancelled" ]; then hb_cause=cancelled
elif [ "$hb_code" = 0 ]; then hb_cause=completed
elif [ "$hb_walltime" -gt 0 ] && [ $((hb_now - hb_began)) -ge "$hb_walltime" ]; then hb_cause=timeout
else hb_cause=failed
fi
hb_sweep $$ $$
hb_sweep_tasks "$hb_name"
rm -f "$hb_dir/$hb_name.new"
echo "$$ $hb_cause $hb_code" > "$hb_dir/$hb_name.new"
mv -f "$hb_dir/$hb_name.new" "$hb_dir/$hb_name.ended"
rm -f "$hb_dir/$hb_name.pid"
find "$hb_dir" -name '*.ended' -mmin +1440 -delete
)sh";

/// $1 is the script.  `setsid -f`, because what sh itself puts into the background cannot be
/// interrupted any more.
inline constexpr const char* kSubmit = R"sh(
number=$(setsid -f sh "$1")
[ -n "$number" ] || exit 3
echo "$number"
)sh";

/// $1 is the prefix.  The last line tells a whole answer from the beginning of one.
inline constexpr const char* kPoll = R"sh(
hb_directory
cd "$hb_dir" || exit 3
hb_uptime
read -r host < /proc/sys/kernel/hostname
for file in $(hb_marks "$1*.pid"); do
  file=${file#./}
  name=${file%.pid} pid=
  { read -r pid start began walltime < "$file"; } 2>/dev/null || [ -e "$file" ] || continue
  [ ! -e "$name.ended" ] || continue
  if [ -z "$pid" ]; then echo "starting $name"
  elif hb_is_alive "$pid" "$start"; then
    left=-
    [ "$walltime" = 0 ] || left=$((walltime - hb_now + began))
    echo "running $name $pid $left $host"
  elif [ -e "$file" ]; then
    hb_sweep_tasks "$name"
    rm -f "$name.new" && echo "$pid lost 0" > "$name.new" && mv -f "$name.new" "$name.ended" && rm -f "$file"
  fi
done
for file in $(hb_marks "$1*.ended"); do
  file=${file#./}
  { read -r pid cause code < "$file"; } 2>/dev/null && echo "ended ${file%.ended} $pid $cause $code"
done
echo end
)sh";

/// The arguments are names.  What does not heed TERM is killed 6 s later by a process that nobody
/// waits for.
inline constexpr const char* kCancel = R"sh(
hb_directory
cd "$hb_dir" || exit 3
sessions=
for name in "$@"; do
  [ -n "$(hb_marks "$name.pid")" ] || continue
  { read -r pid start began walltime < "$name.pid"; } 2>/dev/null && hb_is_alive "$pid" "$start" || continue
  kill -TERM "$pid" && sessions="$sessions $pid $start"
done
[ -n "$sessions" ] || exit 0
setsid -f sh -c "$hb_killer" sh $sessions < /dev/null > /dev/null 2>&1
)sh";

/// Pairs of session leader and its start.
inline constexpr const char* kKiller = R"sh(
rounds=0
while [ "$rounds" -lt 60 ]; do
  alive= leader=
  for word in "$@"; do
    if [ -z "$leader" ]; then leader=$word
    else hb_is_alive "$leader" "$word" && alive="$alive $leader"; leader=
    fi
  done
  [ -n "$alive" ] || exit 0
  sleep 0.1
  rounds=$((rounds + 1))
done
for leader in $alive; do hb_sweep "$leader" none; done
)sh";

inline constexpr const char* kProbe = R"sh(
echo "cpus $(nproc)"
while read -r key value rest; do [ "$key" != MemTotal: ] || echo "memory $value"; done < /proc/meminfo
gpus=0
for device in /dev/nvidia[0-9]*; do [ ! -c "$device" ] || gpus=$((gpus + 1)); done
echo "gpus $gpus"
)sh";

}  // namespace hpcbatch::local
