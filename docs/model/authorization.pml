/*
 * One authorization of USDC (EIP-3009), from its first presentation to its end: two instances over one ledger, a lease with a fencing token, a chain,
 * a payer who presents again and cancels, and third parties who send and present what they have seen. README.md says what is modelled and what is not.
 *
 * -DOFF=<guard> turns a guard off, and -DOFF_TOO=<guard> a second one. -DINVARIANT=<invariant> checks one invariant alone. CALLS, CONTENTS, CRASHES,
 * PAUSES and REVERTS bound a run.
 */
#ifndef CALLS
#define CALLS 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef PAUSES
#define PAUSES 1
#endif
#ifndef REVERTS
#define REVERTS 1
#endif
#ifndef CONTENTS
#define CONTENTS 2
#endif
#ifndef INVARIANT
#define INVARIANT 0
#endif
#ifndef OFF
#define OFF 0
#endif
#ifndef OFF_TOO
#define OFF_TOO 0
#endif

#define ONE_ANSWER 1
#define FULL_PRICE 2
#define OWN_ANSWER 3
#define PAID_IS_SERVED 4
#define FREE_IS_FREE 5
#define NO_402_FOR_PAID 6
#define RIGHT_ANSWER 7
#define HOLDS(invariant, condition) assert((INVARIANT != 0 && INVARIANT != invariant) || (condition))

/* The guards. README.md says what each is. */
#define ROW_FIRST 1
#define SECOND_READ 2
#define SAME_CONTENT 3
#define SAME_REQUEST 4
#define FIRST_PRESENTER 5
#define IN_FLIGHT_IS_UNKNOWN 6
#define EVIDENCE_BEFORE_REUSE 7
#define ONE_INSERT 8
#define OWN_ROW 9
#define ANSWER_BEFORE_SETTLEMENT 10
#define UNKNOWN_IS_503 11
#define EVIDENCE_IN_LOGS 12
#define NOTE_BEFORE_SEND 13
#define NOTE_DECIDES 14
#define NOTE_IN_OPEN_ROW 15
#define WAIT_FOR_OWN 16
#define LAST_CHECK 17
#define FENCING_TOKEN 18
#define ON(guard) (OFF != guard && OFF_TOO != guard)

/*
 * What is presented: one of two requests, with one of two contents. Both contents have the same payer and nonce. Content 1 is signed for twice the
 * amount. A request has the price of the content that it comes with: prices differ between routes and change with time.
 */
#define VALUE(content) (1 + content)

/* The ledger's row of this payer and nonce. `id` is new with each reservation. */
#define NONE 0
#define RESERVED 1
#define SETTLING 2
#define UNKNOWN 3
#define SETTLED 4
#define FAILED 5
byte row = NONE;
byte id = 0;
bit request;        /* what was reserved */
bit content;        /* the authorization in it */
bit dear;           /* its price: VALUE(dear) */
byte owner;         /* the process that reserved it: instance + 2 * boot */
bit noted = 0;      /* a transaction with it is noted: it may have been sent */
bit tried = 0;      /* a settlement of it moved nothing before */
bit final = 0;      /* it failed for good: cancelled, or expired */
byte reply = 0;     /* the stored answer: 1 + the request that it answers */

/* The chain. */
#define UNUSED 0
#define PAID 1
#define ELSEWHERE 2
byte used = UNUSED;
bit paid;           /* the content that paid */
bit expired = 0;
bit pending[4];     /* a transaction of instance i with content c can still be mined: i + 2 * c */
bit public[2];      /* content that a node has seen */

/* The instances. A paused one goes on where it stopped. */
byte boot[2];
bit paused[2];
bit leader = 0;
byte token = 0;
byte crashes = 0, pauses = 0, reverts = 0;

/*
 * A simulated run prints a line for each write of the ledger: what, by which process, with what result, and the row after it. `test/model/walks.test.ts`
 * makes the same writes in the real ledger.
 */
#define ROW row, id, request, content, noted, tried, final
#define PROCESS at, itsBoot

/* -DWALK: a simulated run, in which the authorization would else expire before much has happened to it. */
#ifdef WALK
byte dice = 1;
#define RARELY (dice == 0)
#else
#define RARELY true
#endif

/* What was answered. */
bit answered[2];

#define RUNS(instance, itsBoot) (boot[instance] == itsBoot && !paused[instance])
#define DIES(instance, itsBoot) boot[instance] != itsBoot -> goto end
#define OPEN (row == SETTLING || row == UNKNOWN)
#define LEADS (token == itsToken || !ON(FENCING_TOKEN))
#define ITS_REQUEST (request == wanted || !ON(SAME_REQUEST))
#define ANY_PENDING (pending[0] || pending[1] || pending[2] || pending[3])
#define THIRD 1
#define BUYER 0

/* Deletes a reservation of which nothing was sent. One that was tried before is again what it was. */
inline release() {
  if
  :: tried -> row = FAILED
  :: else -> row = NONE; owner = 0; request = 0; content = 0; dear = 0
  fi;
  reply = 0
}

inline deliver(body) {
  if
  :: ON(LAST_CHECK) && used == PAID && paid < dear -> skip /* 500 underpaid */
  :: else ->
    answered[wanted] = 1;
    HOLDS(ONE_ANSWER, answered[0] + answered[1] <= 1);
    HOLDS(FULL_PRICE, used == PAID && VALUE(paid) >= VALUE(dear));
    HOLDS(OWN_ANSWER, who == BUYER);
    HOLDS(RIGHT_ANSWER, body == 1 + wanted)
  fi
}

/* 402, after which a client signs another payment. */
inline refuse() {
  HOLDS(NO_402_FOR_PAID, !(who == BUYER && used == PAID && paid == shown && (row == NONE || request == wanted)))
}

/* An error that says `charged: false`. */
inline sayFree() {
  HOLDS(FREE_IS_FREE, used != PAID && !ANY_PENDING && !(OPEN && id == mine))
}

/* One presentation of the authorization for one request, at one instance. Each `atomic` is one write or one read of the ledger or of the chain. */
proctype Call() {
  bit at, who, wanted, shown, again = 0;
  byte itsBoot, mine = 0;

  atomic {
    if
    :: at = 0
    :: at = 1
    fi;
    if
    :: wanted = 0
    :: wanted = 1
    fi;
    if
    :: shown = 0
    :: CONTENTS == 2 -> shown = 1
    fi;
    if
    :: who = BUYER
    :: public[shown] -> who = THIRD
    fi;
    !paused[at] && RARELY -> itsBoot = boot[at]
  }

find: /* steps 3 and 4: the row of a known authorization decides; then come the cheap checks */
  atomic {
    if
    :: DIES(at, itsBoot)
    :: RUNS(at, itsBoot) ->
      if
      :: !ON(ROW_FIRST) && expired -> refuse(); goto end
      :: ON(ROW_FIRST) && expired && row == NONE -> goto end /* 402 */
      :: !expired && row == NONE -> goto look
      :: (ON(ROW_FIRST) || !expired) && row != NONE ->
        if
        :: ON(SAME_CONTENT) && content != shown -> goto end /* 402: another authorization */
        :: !ON(SAME_CONTENT) || content == shown ->
          if
          :: ON(IN_FLIGHT_IS_UNKNOWN) && (row == RESERVED || row == SETTLING) -> goto end /* 409: charged "unknown" */
          :: !ON(IN_FLIGHT_IS_UNKNOWN) && (row == RESERVED || row == SETTLING) -> mine = id; sayFree(); goto end
          :: row == UNKNOWN -> mine = id; goto wait
          :: row == SETTLED ->
            if
            :: (who == BUYER || !ON(FIRST_PRESENTER)) && ITS_REQUEST -> deliver(reply)
            :: else -> refuse()
            fi;
            goto end
          :: row == FAILED && final -> refuse(); goto end
          :: row == FAILED && !final && (who == THIRD || !ITS_REQUEST) -> goto end /* 402: it says that it is used */
          :: row == FAILED && !final && who == BUYER && ITS_REQUEST -> again = 1; goto reuse
          fi
        fi
      fi
    fi
  }

reuse: /* a reverted authorization: the evidence is read first */
  atomic {
    if
    :: DIES(at, itsBoot)
    :: !ON(EVIDENCE_BEFORE_REUSE) && RUNS(at, itsBoot) -> goto look
    :: ON(EVIDENCE_BEFORE_REUSE) && RUNS(at, itsBoot) ->
      if
      :: used == PAID -> goto reserve
      :: used == ELSEWHERE || (used == UNUSED && expired) ->
        if
        :: row == FAILED -> final = 1; printf("@ ruleOut %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, id, ROW)
        :: else
        fi;
        goto end /* 402 */
      :: used == UNUSED && !expired -> goto look
      fi
    fi
  }

look: /* steps 5 and 6: the chain is read */
  atomic {
    if
    :: DIES(at, itsBoot)
    :: RUNS(at, itsBoot) ->
      if
      :: used == UNUSED -> goto reserve
      :: used != UNUSED && !again && ON(SECOND_READ) && row != NONE -> goto find /* it was taken since step 3 */
      :: used != UNUSED && !again && (!ON(SECOND_READ) || row == NONE) -> refuse(); goto end
      :: used != UNUSED && again && ON(EVIDENCE_BEFORE_REUSE) -> goto end /* 503: charged "unknown" */
      :: used != UNUSED && again && !ON(EVIDENCE_BEFORE_REUSE) -> refuse(); goto end
      fi
    fi
  }

reserve: /* step 7: one insert, which one caller wins */
  atomic {
    if
    :: DIES(at, itsBoot)
    :: RUNS(at, itsBoot) ->
      if
      :: !ON(ONE_INSERT) || row == NONE || (again && row == FAILED && !final) ->
        if
        :: row == NONE -> content = shown
        :: else
        fi;
        row = RESERVED; dear = shown; id++; mine = id; owner = at + 2 * itsBoot; request = wanted; noted = 0; reply = 0;
        printf("@ reserve %d %d %d %d %d %d | %d %d %d %d %d %d %d\n", PROCESS, id, wanted, shown, again, ROW)
      :: else ->
        printf("@ reserve %d %d 0 %d %d %d | %d %d %d %d %d %d %d\n", PROCESS, wanted, shown, again, ROW);
        again = 0; goto find
      fi
    fi
  }

  /* steps 8 to 11: the handler runs, and the answer is stored */
  atomic {
    if
    :: DIES(at, itsBoot)
    :: RUNS(at, itsBoot) -> /* the handler fails */
      if
      :: id == mine && (row == RESERVED || row == SETTLING) && !noted ->
        release();
        printf("@ abandon %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, mine, ROW);
        if
        :: again -> skip /* charged "unknown" */
        :: else -> sayFree()
        fi
      :: else -> printf("@ abandon %d %d %d 0 | %d %d %d %d %d %d %d\n", PROCESS, mine, ROW) /* 503: charged "unknown" */
      fi;
      goto end
    :: RUNS(at, itsBoot) ->
      if
      :: (!ON(OWN_ROW) || id == mine) && row == RESERVED ->
        row = SETTLING; mine = id;
        reply = (ON(ANSWER_BEFORE_SETTLEMENT) -> 1 + wanted : reply);
        printf("@ store %d %d %d 1 %d | %d %d %d %d %d %d %d\n", PROCESS, mine, wanted, ROW)
      :: else ->
        printf("@ store %d %d %d 0 %d | %d %d %d %d %d %d %d\n", PROCESS, mine, wanted, ROW);
        goto end /* 503: charged "unknown" */
      fi
    fi
  }

wait: /* steps 12 and 13: the row's end, or a time-out */
  atomic {
    if
    :: DIES(at, itsBoot)
    :: RUNS(at, itsBoot) && id == mine && row == SETTLED ->
      reply = (ON(ANSWER_BEFORE_SETTLEMENT) -> reply : 1 + wanted);
      if
      :: who == BUYER && request == wanted -> deliver(reply)
      :: else -> refuse()
      fi
    :: RUNS(at, itsBoot) && id == mine && row == FAILED && final -> refuse()
    :: RUNS(at, itsBoot) && id == mine && row == FAILED && !final -> skip /* 402: it moved nothing */
    :: RUNS(at, itsBoot) && id != mine -> skip /* 503 */
    :: RUNS(at, itsBoot) && id == mine && OPEN && RARELY ->
      row = UNKNOWN;
      printf("@ unknown %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, mine, ROW);
      if
      :: ON(UNKNOWN_IS_503) -> skip
      :: else -> goto end402
      fi
    :: RUNS(at, itsBoot) && id == mine && row == RESERVED -> skip /* 503 */
    :: RUNS(at, itsBoot) && id == mine && row == NONE -> skip /* 503 */
    fi
  }
  goto end;

end402: /* without UNKNOWN_IS_503 */
  atomic { refuse() }
end:
  atomic { at = 0; who = 0; wanted = 0; shown = 0; again = 0; itsBoot = 0; mine = 0 }
}

/* A transaction is noted, then sent. Without the guard it is sent first. */
inline transact() {
  if
  :: ON(NOTE_BEFORE_SEND) -> goto note
  :: else -> goto send
  fi
}

/* Settles the row while its instance leads. */
proctype Settler(bit at) {
  byte itsBoot, its, itsToken;
  bit what;

  goto idle;
done:
  atomic { itsBoot = 0; its = 0; itsToken = 0; what = 0 }
idle:
  atomic {
    leader == at && !paused[at] && OPEN ->
    itsBoot = boot[at]; its = id; itsToken = token; what = content;
    if
    :: noted || tried -> goto lookUp
    :: else -> transact()
    fi
  }

lookUp: /* it may have been sent before: the evidence first */
  atomic {
    if
    :: boot[at] != itsBoot -> goto done
    :: RUNS(at, itsBoot) && !(id == its && OPEN) -> goto done
    :: RUNS(at, itsBoot) && id == its && OPEN ->
      if
      :: ON(EVIDENCE_IN_LOGS) && used == PAID && paid == content -> row = SETTLED; tried = 0; printf("@ settled %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW); goto done
      :: ON(EVIDENCE_IN_LOGS) && (used == ELSEWHERE || (used == PAID && paid != content)) -> row = FAILED; final = 1; reply = 0; printf("@ failed %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW); goto done
      :: !ON(EVIDENCE_IN_LOGS) && used != UNUSED -> row = SETTLED; paid = content; goto done
      :: used == UNUSED && expired -> row = FAILED; final = 1; reply = 0; printf("@ failed %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW); goto done
      :: used == UNUSED && !expired -> transact()
      fi
    fi
  }

note:
  atomic {
    if
    :: boot[at] != itsBoot -> goto done
    :: ON(NOTE_IN_OPEN_ROW) && RUNS(at, itsBoot) && !(LEADS && id == its && OPEN) ->
      printf("@ note %d %d %d 0 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW);
      goto done
    :: !ON(NOTE_IN_OPEN_ROW) && RUNS(at, itsBoot) && !(id == its && OPEN) -> skip
    :: RUNS(at, itsBoot) && (LEADS || !ON(NOTE_IN_OPEN_ROW)) && id == its && OPEN ->
      noted = 1;
      printf("@ note %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW)
    fi;
    if
    :: ON(NOTE_BEFORE_SEND) -> skip
    :: else -> goto see
    fi
  }

send:
  atomic {
    if
    :: boot[at] != itsBoot -> goto done
    :: !ON(NOTE_BEFORE_SEND) && RUNS(at, itsBoot) && !(id == its && OPEN) -> goto done
    :: RUNS(at, itsBoot) && (ON(NOTE_BEFORE_SEND) || (id == its && OPEN)) ->
      pending[at + 2 * what] = (used == UNUSED && !expired); public[what] = 1
    fi;
    if
    :: ON(NOTE_BEFORE_SEND) -> skip
    :: else -> goto note
    fi
  }

see: /* its end, or none that can be seen now */
  atomic {
    if
    :: boot[at] != itsBoot -> skip
    :: RUNS(at, itsBoot) && !(id == its && OPEN) -> skip
    :: RUNS(at, itsBoot) && id == its && OPEN && (RARELY || used != UNUSED || expired || !pending[at + 2 * what]) ->
      if
      :: ON(EVIDENCE_IN_LOGS) && used == PAID && paid == content -> row = SETTLED; tried = 0; printf("@ settled %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW)
      :: ON(EVIDENCE_IN_LOGS) && (used == ELSEWHERE || (used == PAID && paid != content)) -> row = FAILED; final = 1; reply = 0; printf("@ failed %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW)
      :: !ON(EVIDENCE_IN_LOGS) && used != UNUSED -> row = SETTLED; paid = content
      :: used == UNUSED && expired -> row = FAILED; final = 1; reply = 0; printf("@ failed %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW)
      :: ON(WAIT_FOR_OWN) && used == UNUSED && !expired && !pending[at + 2 * what] && LEADS -> row = FAILED; tried = 1; reply = 0; printf("@ failed %d %d %d 1 | %d %d %d %d %d %d %d\n", PROCESS, its, ROW)
      :: !ON(WAIT_FOR_OWN) && used == UNUSED && !expired -> row = FAILED; final = 1; reply = 0
      :: skip /* unknown: the timer looks again */
      fi
    fi
  }
  goto done
}

/* The leader takes over the row of a process that is dead, or that looks dead because it is paused. */
proctype Recovery() {
  byte inst;
  do
  :: atomic {
      (row == RESERVED || row == SETTLING) && !paused[leader] && (boot[owner % 2] != owner / 2 || (paused[owner % 2] && owner % 2 != leader)) ->
      if
      :: ON(NOTE_DECIDES) && noted -> row = UNKNOWN
      :: !ON(NOTE_DECIDES) || !noted -> release()
      fi;
      printf("@ recover %d %d %d %d %d %d | %d %d %d %d %d %d %d\n", leader, boot[leader], boot[0], paused[0], boot[1], paused[1], ROW)
    }
  od
}

/* What the chain, the payer, third parties and the machines do. */
proctype World() {
  byte which;
  do
#ifdef WALK
  :: dice = 0
  :: dice = 1
  :: dice = 2
  :: dice = 3
  :: dice = 4
#endif
  :: atomic { used == UNUSED && !expired -> /* a transaction of ours is mined */
      if
      :: pending[0] || pending[1] -> used = PAID; paid = 0
      :: pending[2] || pending[3] -> used = PAID; paid = 1
      fi;
      pending[0] = 0; pending[1] = 0; pending[2] = 0; pending[3] = 0 }
  :: atomic { ANY_PENDING && reverts < REVERTS -> /* or moves nothing */
      if
      :: pending[0] -> pending[0] = 0
      :: pending[1] -> pending[1] = 0
      :: pending[2] -> pending[2] = 0
      :: pending[3] -> pending[3] = 0
      fi;
      reverts++ }
  :: atomic { used == UNUSED && !expired && RARELY && (public[0] || public[1]) -> /* a third party sends what a node has seen */
      used = PAID;
      if
      :: public[0] -> paid = 0
      :: public[1] -> paid = 1
      fi;
      pending[0] = 0; pending[1] = 0; pending[2] = 0; pending[3] = 0 }
  :: atomic { used == UNUSED && RARELY -> used = ELSEWHERE; pending[0] = 0; pending[1] = 0; pending[2] = 0; pending[3] = 0 } /* the payer cancels */
  :: atomic { !expired && RARELY -> expired = 1; pending[0] = 0; pending[1] = 0; pending[2] = 0; pending[3] = 0 }
  :: atomic { crashes < CRASHES ->
      if
      :: which = 0
      :: which = 1
      fi;
      boot[which]++; paused[which] = 0; crashes++;
      if
      :: which == leader -> leader = 1 - leader; token++
      :: true
      fi;
      which = 0 }
  :: atomic { pauses < PAUSES ->
      if
      :: !paused[0] -> paused[0] = 1
      :: !paused[1] -> paused[1] = 1
      fi;
      pauses++ }
  :: atomic { paused[0] -> paused[0] = 0 }
  :: atomic { paused[1] -> paused[1] = 0 }
  :: atomic { paused[leader] && !paused[1 - leader] -> leader = 1 - leader; token++ }
  od
}

/* A payer whose authorization has paid is served, or is served when it presents the authorization again. */
#define SERVES_ITS_PAYER (row != NONE && content == paid && !(row == FAILED && final) && !((OPEN || row == SETTLED) && (reply != 1 + request || paid < dear)))
active proctype Monitor() {
  atomic { used == PAID && !SERVES_ITS_PAYER -> HOLDS(PAID_IS_SERVED, false) }
}

init {
  byte n;
  atomic {
    run World(); run Recovery(); run Settler(0); run Settler(1);
    for (n : 1 .. CALLS) { run Call() }
    n = 0
  }
}
