import time,collections,cProfile,pstats
from pathlib import Path
from recorded import *; from modes import *
import modes, attrs,sys
from makeway.replay import replay,Options
log=read_log(Path("/work/shared/workloads/xdmod-pozidriv.sacct.gz"))
c=derived_config(log)
sel,typ,con=sys.argv[1:4]
c=attrs.evolve(c,policy=attrs.evolve(c.policy,select=sel,select_parameters=("CR_Core",) if "cons" in sel else ()),scheduler=attrs.evolve(c.scheduler,type=typ))
A=Assumptions(constrained=con=="1")
specs=[modes._free(j,log,A) for j in log.started]
t=time.time()
if len(sys.argv)>4:
    pr=cProfile.Profile(); 
    specs=specs[:int(sys.argv[4])]
    pr.enable(); r=replay(c,specs); pr.disable(); pstats.Stats(pr).sort_stats("cumtime").print_stats(28)
else: r=replay(c,specs)
print(sys.argv,round(time.time()-t,1),len(r.recorder.preemptions), {k:(len(w),sum(x>0 for x in w),round(sum(w)/len(w))) for k,w in r.recorder.metrics.waits_in.items()},collections.Counter(r.recorder.metrics.pairs))
real={l.job.id:l for l in log.losses}
p=[e.victim for e in r.recorder.preemptions]; print(len(set(p)&real.keys()))
