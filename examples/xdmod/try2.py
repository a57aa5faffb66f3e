import time,collections
from pathlib import Path
from recorded import *; from modes import *
import modes
import attrs,sys
log=read_log(Path("/work/shared/workloads/xdmod-pozidriv.sacct.gz"))
c=derived_config(log)
real={l.job.id:l for l in log.losses}
ask=[j for j in log.started if not j.scavenger and j.start-j.eligible<=10]
print(len(ask), collections.Counter(j.partition for j in ask))
def nxt(v): 
    ls=[j for j in ask for n in v.nodes if n in j.nodes and 0<=j.start-v.end<=10]
    return ls
exp={l.job.id for l in log.losses if nxt(l.job)}
print(len(exp))
for sel,par in (("select/linear",()),("select/cons_tres",("CR_Core",))):
    cc=modes._greedy(attrs.evolve(c,policy=attrs.evolve(c.policy,select=sel,select_parameters=par)))
    got={}; t0=time.time()
    for j in ask:
        for l in modes._decide(log,cc,Assumptions(),[j],j.eligible):
            got.setdefault(l.job.id,(l,j))
    print(sel,len(got),len(got.keys()&exp),len(got.keys()&real.keys()),time.time()-t0)
    print("missed",[(i,log.by_id[i].nodes) for i in sorted(exp-got.keys())])
    for i,(l,j) in got.items():
        if i not in exp: print("FP",i,log.by_id[i].nodes,"ran",l.at-l.job.start,"left",l.job.end-l.at,"for",j.id,j.partition,j.spec.user,j.spec.tasks,j.nodes,"really",j.start-j.eligible,"was",[(k.id,k.partition,k.end-j.eligible) for k in log.on[j.nodes[0]] if -30<=k.end-j.start<=0][-2:])
