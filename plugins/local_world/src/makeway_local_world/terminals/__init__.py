"""Jobs in the foreground: the terminal of a job, and the person at it.

All of it has the rights of the job's owner: `host` is the first process of the job, `guest` is the command that was
typed. They meet at a socket in a directory that is closed to all others, and each sees by the kernel who the other is.
The daemon only stores the directory's name; it opens no terminal, and nothing in there.

========== ==========================================================================
module     what it owns
========== ==========================================================================
meeting    the directory, the socket, who may come, and what guests say
host       in the job: hands it the guest's own streams, or holds a terminal for it
guest      at the user's terminal: keys, output, the size of the window
watching   what becomes of the job meanwhile, as its daemon tells it
========== ==========================================================================
"""
