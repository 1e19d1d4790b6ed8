/*
 * One payment channel: a deposit, vouchers from two devices of one payer, claims, a refund, and the payer's own withdrawal. README.md says what is
 * modelled and what is not. Each call costs one unit.
 *
 * -DOFF=<guard> turns a guard off. -DINVARIANT=<invariant> checks one invariant alone. CALLS, MOST (the highest ceiling) and TOP_UPS bound a run.
 */
#ifndef CALLS
#define CALLS 3
#endif
#ifndef MOST
#define MOST 3
#endif
#ifndef TOP_UPS
#define TOP_UPS 1
#endif
#ifndef INVARIANT
#define INVARIANT 0
#endif
#ifndef OFF
#define OFF 0
#endif

#define ESCROW_COVERS 1
#define NO_MORE_THAN_SIGNED 2
#define ONE_CHARGE_ONE_ANSWER 3
#define ACKNOWLEDGED_IS_KEPT 4
#define OWN_ANSWER 5
#define RIGHT_ANSWER 6
#define HOLDS(invariant, condition) assert((INVARIANT != 0 && INVARIANT != invariant) || (condition))

/* The guards. README.md says what each is. */
#define SAME_BUYER 1
#define SAME_REQUEST 2
#define EXACT_CEILING 3
#define COMPARE 4
#define CHARGE_BEFORE_ANSWER 5
#define COVER 6
#define REFUND_HOLDS 7
#define REFUND_LESS_CHARGES 8
#define DEPOSIT_ONCE 9
#define FRESH_STATE 10
#define CLAIM_IN_TIME 11
#define SIGNED 12
#define PASSED_ON 13
#define ON(guard) (OFF != guard)

/* The contract. `balance` is all that was put in, less what went back; it includes what is claimed. */
byte balance = 2;
byte claimed = 0;
byte withdrawing = 0;   /* what a pending withdrawal may take */
bit matured = 0;        /* its delay has passed */
byte block = 1;
byte withdrawBlock = 0; /* of the withdrawal's beginning */

/* The ledger's row of the channel. The state is what was last read from the contract. */
byte charged = 0;
byte knownBalance = 2;
byte knownWithdrawing = 0;
byte knownBlock = 1;
bit refunding = 0;      /* a refund is open */
bit depositing = 0;     /* a deposit is open: a sale with the channel's serial key */

/* The answers that the ledger keeps: of the voucher over n units, 1 + the request that it bought. */
byte kept[MOST + 1];
byte answers = 0;       /* answers that were charged for */

byte ceiling = 0;       /* the highest that the payer has signed */
byte public = 0;        /* the highest voucher that a claim has published */
byte topUps = 0;
byte depositBlock = 0;

#define BUYER 0
#define THIRD 1

/* The guards that are conditions. */
#define COVERED(max) (max <= knownBalance - (ON(COVER) -> knownWithdrawing : 0))
#define HELD ((ON(REFUND_HOLDS) && refunding) || depositing)
#define FITS(max) (ON(EXACT_CEILING) -> max == charged + 1 : max > charged)
#define STILL_FITS(max) (!ON(COMPARE) || FITS(max))
#define SEEN (!ON(FRESH_STATE) || knownBlock >= withdrawBlock)
#define CLAIMED_IN_TIME (!ON(CLAIM_IN_TIME) || charged <= claimed || charged <= balance - withdrawing)

inline readChannel() {
  if
  :: knownBlock < block -> knownBalance = balance; knownWithdrawing = withdrawing; knownBlock = block
  :: else
  fi
}

inline deliver(who, body) {
  HOLDS(OWN_ANSWER, who == BUYER);
  HOLDS(RIGHT_ANSWER, body == 1 + wanted);
  HOLDS(ACKNOWLEDGED_IS_KEPT, charged >= max && kept[max] == body)
}

/* One presentation of a voucher over `max` units. It may die at each step, as its process does. */
proctype Call() {
  bit who, wanted;
  byte max;

  atomic { /* each device signs what it likes; a third party has what a claim has published */
    if
    :: wanted = 0
    :: wanted = 1
    fi;
    for (max : 1 .. MOST) {
      if
      :: break
      :: max < MOST -> skip
      fi
    }
    if
    :: who = BUYER;
      if
      :: max > ceiling -> ceiling = max
      :: else
      fi
    :: !ON(SIGNED) || max <= public -> who = THIRD
    fi
  }

  atomic { /* 1 to 3: has it bought this request? Does it fit the charges and the money? */
    if
    :: max <= charged ->
      if
      :: (!ON(SAME_BUYER) || who == BUYER) && kept[max] == 1 + wanted -> deliver(who, kept[max])
      :: !ON(SAME_REQUEST) && who == BUYER && kept[max] != 0 && kept[max] != 1 + wanted -> deliver(who, kept[max])
      :: else -> skip /* 402: it says what is charged */
      fi;
      goto end
    :: max > charged && !(FITS(max) && !HELD && COVERED(max)) -> goto end /* 402 */
    :: FITS(max) && !HELD && COVERED(max) -> skip
    fi
  }

  /* 4: the endpoint runs */
  if
  :: goto end /* it fails, or the process dies: nothing is charged */
  :: ON(CHARGE_BEFORE_ANSWER) -> goto charge
  :: !ON(CHARGE_BEFORE_ANSWER) -> skip
  fi;
  atomic { deliver(who, 1 + wanted) }

charge:
  atomic { /* 5: the charge and the answer, in one write that compares */
    if
    :: STILL_FITS(max) && !HELD && COVERED(max) ->
      answers++;
      charged = max;
      kept[max] = 1 + wanted;
      HOLDS(NO_MORE_THAN_SIGNED, charged <= ceiling);
      HOLDS(ONE_CHARGE_ONE_ANSWER, charged == answers)
    :: else -> goto end /* another process was faster: 402 */
    fi
  }
  if
  :: atomic { deliver(who, 1 + wanted) }
  :: skip /* the process dies, or the connection breaks: the voucher gets the answer when it is presented again */
  fi;
end:
  atomic { who = 0; wanted = 0; max = 0 }
}

/* The process that settles: claims, and the watch over withdrawals. A claim is sent over what was charged when it was made. */
proctype Claims() {
  byte over = 0;
  do
  :: atomic { charged > claimed && over == 0 -> over = charged }
  :: atomic { over > 0 -> /* mined, in any order with everything else */
      if
      :: over <= balance && over > claimed ->
        claimed = over;
        public = over;
        withdrawing = (withdrawing < balance - claimed -> withdrawing : balance - claimed);
        block++;
        HOLDS(NO_MORE_THAN_SIGNED, claimed <= charged)
      :: else
      fi;
      over = 0 }
  :: over > 0 -> over = 0 /* dropped; or the process dies, and the next one begins anew */
  :: atomic { knownBlock < block -> readChannel() }
  od
}

/* A refund: an operation in the ledger, one transaction that claims what is charged and pays the rest back, and the operation's end. */
proctype Refund() {
  byte over, back;
  atomic {
    !refunding && !depositing && charged > 0 ->
    readChannel();
    over = charged;
    back = knownBalance - (ON(REFUND_LESS_CHARGES) -> charged : claimed);
    refunding = 1
  }
  atomic {
    if
    :: over <= balance && back <= balance - over ->
      claimed = (over > claimed -> over : claimed);
      public = claimed;
      balance = balance - back;
      withdrawing = (withdrawing < balance - claimed -> withdrawing : balance - claimed);
      block++
    :: !ON(REFUND_LESS_CHARGES) && back <= balance - claimed -> balance = balance - back; block++
    :: skip /* it fails */
    fi
  }
  atomic { readChannel(); refunding = 0 }
}

/*
 * A deposit of one unit: a sale that holds the channel until it ends. The payer can sign a plain transfer to the collector with the same nonce. Whoever
 * sends that leaves the money there. Otherwise the ledger adds the deposit, unless it has read it already.
 */
proctype Deposit() {
  bit stray;
  atomic { !refunding && !depositing && topUps < TOP_UPS -> depositing = 1; topUps++ }
  atomic {
    if
    :: balance++; block++; depositBlock = block
    :: stray = 1
    fi
  }
  atomic {
    if
    :: stray && ON(PASSED_ON) /* it has failed */
    :: stray && !ON(PASSED_ON) -> knownBalance++
    :: !stray && (!ON(DEPOSIT_ONCE) || knownBlock < depositBlock) -> knownBalance++
    :: else
    fi;
    depositing = 0
  }
}

/* The payer withdraws without us. The delay is as long as the service needs to read the channel and to claim, and longer. */
proctype Withdrawal() {
  do
  :: atomic { withdrawing == 0 && balance > claimed -> withdrawing = balance - claimed; matured = 0; block++; withdrawBlock = block }
  :: atomic {
      withdrawing > 0 && !matured && SEEN && CLAIMED_IN_TIME -> matured = 1 }
  :: atomic { withdrawing > 0 && matured ->
      balance = balance - withdrawing; withdrawing = 0; matured = 0; block++ }
  od
}

active proctype Monitor() {
  atomic { charged > balance -> HOLDS(ESCROW_COVERS, false) }
}

init {
  byte n;
  atomic {
    run Claims(); run Withdrawal(); run Refund(); run Deposit();
    for (n : 1 .. CALLS) { run Call() }
    n = 0
  }
}
