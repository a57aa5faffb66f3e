#!/bin/sh
# Set up a Slurm cluster of four emulated nodes, put half of it under LSF's policy, preempt, kill the daemon, recover,
# hand everything back, and say what was checked. Needs root, and Debian's slurmctld, slurmd and slurm-client.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
for each in makeway slurmctld slurmd scontrol; do
    command -v "$each" >/dev/null || {
        echo "run.sh: there is no '$each' on the PATH; README.md installs makeway, and apt-get install" \
            "slurmctld slurmd slurm-client installs Slurm" >&2
        exit 1
    }
done
place=$(mktemp -d)
chmod 755 "$place"
driver=

finish() {
    status=$?
    trap - EXIT INT TERM
    [ -z "$driver" ] || kill -9 "$driver" 2>/dev/null || :
    [ "$status" = 0 ] || { echo "--- what drive said"; tail -n 40 "$place"/drive*.log; } 2>/dev/null || :
    "$python" "$here/cluster.py" stop "$place/cluster"
    rm -rf "$place"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

state_of() { scontrol -o show job "$1" | sed -n 's/.* JobState=\([A-Z]*\).*/\1/p'; }
submit() { sbatch --parsable -o /dev/null "$@"; }
checked=0
check() { # TEXT COMMAND...: the command has to succeed within a minute and a half
    text=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 450 ] || { echo "FAILED: $text"; squeue; exit 1; }
        sleep 0.2
    done
    checked=$((checked + 1))
    echo "ok: $text"
}
is() { [ "$(state_of "$1")" = "$2" ]; }
one_is_suspended() { [ "$(squeue -h -t SUSPENDED -o %A | wc -l)" = 1 ]; }
none_is_suspended() { [ -z "$(squeue -h -t SUSPENDED -o %A)" ]; }
drives() { grep -q '^driving' "$1"; }
no_reservation() { scontrol show res 2>&1 | grep -q 'No reservations'; }
drive() {
    makeway slurm drive "$here/lsf.toml" --nodes 'n[1-2]' --state "$place/state" --lease 30 >"$1" 2>&1 &
    driver=$!
}

eval "$("$python" "$here/cluster.py" start "$place/cluster")"
check "four nodes are idle" test "$(sinfo -h -o %D -t idle | head -n 1)" = 4

for _ in 1 2 3 4; do submit -p low -N1 -n4 --wrap 'sleep 600' >"$place/last"; done
last=$(cat "$place/last")
check "four jobs of the partition low fill the cluster" is "$last" RUNNING

echo "--- what LSF's policy would do with an urgent job, before anything is changed"
makeway slurm victims --config "$here/lsf.toml" -- -p high -N1 -n4 2>/dev/null

drive "$place/drive1.log"
check "makeway drives n[1-2]" drives "$place/drive1.log"
urgent=$(submit -p high -N1 -n4 --wrap 'sleep 25')
check "the urgent job runs" is "$urgent" RUNNING
check "one job was suspended for it" one_is_suspended

kill -9 "$driver"
wait "$driver" 2>/dev/null || :
echo "--- makeway was killed with kill -9"
late=$(submit -p low -N1 -n4 --wrap 'sleep 600')
check "the urgent job goes on without makeway" is "$urgent" RUNNING
check "nobody else starts on its nodes" is "$late" PENDING

drive "$place/drive2.log"
check "the next makeway takes over" drives "$place/drive2.log"
check "the urgent job completes" is "$urgent" COMPLETED
check "the suspended job goes on" none_is_suspended
check "whoever came late still waits" is "$late" PENDING

kill "$driver"
wait "$driver" || { echo "FAILED: makeway did not hand back"; cat "$place/drive2.log"; exit 1; }
driver=
check "the reservation is gone" no_reservation
check "no job is suspended or held" none_is_suspended
scancel "$last"
check "Slurm schedules by itself again" is "$late" RUNNING

if makeway doctor 2>/dev/null | grep -q '^ok .*criu'; then
    echo "--- a job that saves itself, by \`makeway checkpointable\`, which Slurm knows nothing of"
    scancel -p low
    cat >"$place/saved.sh" <<END
#!/bin/sh
exec makeway checkpointable --dir "$place/saved" -- sh -c 'for second in \$(seq 12); do echo \$second; sleep 1; done'
END
    saved=$(sbatch --parsable --requeue --open-mode=append -o "$place/saved.out" -N1 -n4 "$place/saved.sh")
    check "it counts the seconds" grep -qsx 3 "$place/saved/stdout"
    scancel --signal=TERM --batch "$saved"
    check "told to leave, it is saved and waits again" is "$saved" PENDING
    scontrol update JobId="$saved" StartTime=now
    check "it completes" is "$saved" COMPLETED
    seq 12 >"$place/expected"
    check "it counted to 12, each second once" cmp -s "$place/expected" "$place/saved/stdout"
fi
echo "$checked checks passed"
