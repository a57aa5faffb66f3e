import time,collections
from pathlib import Path
from recorded import *; from modes import *
import attrs,sys
log=read_log(Path("/work/shared/workloads/xdmod-pozidriv.sacct.gz"))
print(len(log.jobs),len(log.losses),log.rejected,len(log.cpus),collections.Counter(l.preemptor for l in log.losses))
c=derived_config(log)
real={l.job.id:l for l in log.losses}
import datetime
T0=datetime.datetime(2016,12,30,tzinfo=datetime.UTC).timestamp()-log.start_wall
for m in sys.argv[1].split(","):
  for sel,par in (("select/linear",()),("select/cons_tres",("CR_Core",))):
    cc=attrs.evolve(c,policy=attrs.evolve(c.policy,select=sel,select_parameters=par))
    t=time.time(); o=MODES[m](log,cc,Assumptions(warm_at=T0)); 
    p={l.job.id for l in o.losses}
    near=sum(1 for l in o.losses if l.job.id in real and abs(real[l.job.id].at-l.at)<=300)
    print(m,sel,len(o.losses),len(p&real.keys()),near,collections.Counter(l.preemptor for l in o.losses),o.not_placed,round(time.time()-t,1),flush=True)
