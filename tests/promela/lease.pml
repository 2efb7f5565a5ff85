/* The lease protocol on PostgreSQL, for Spin: `scripts/model` runs it.
 *
 * One lane of JOBS jobs, WORKERS workers, a sweeper, an operator, a producer and the database's
 * clock. Each step has the name of its statement in src/freehold/store/postgres/sql/. The model
 * contains the parts of PostgreSQL that the protocol depends on:
 *
 *   - a statement reads a snapshot of the rows committed when it began (snap_*), but a row that it
 *     locks is read again, in its current version;
 *   - FOR UPDATE waits or skips if another transaction has locked the row; several transactions can
 *     hold FOR KEY SHARE, which prevents the row's removal;
 *   - the writes of a transaction are invisible before its commit, and its locks last until then;
 *   - with a unique index (job_holder), a writer waits for a transaction that is changing the same
 *     entry, and the second entry is refused.
 *
 * Time is nondeterministic: any lease may expire at any time, also that of a worker that still runs
 * (it was frozen) and sends its ending later (it may set the ending aside and continue).
 *
 * Properties, as assertions:
 *   FENCE    no finish and no renewal of a lost lease is accepted, and one finish per lease
 *   LANE     never two holders, and no job is leased before all older jobs have left
 * and as the absence of invalid end states:
 *   ENDS     every job ends: none is lost, and no lane is stuck
 *
 * Each mutant (-DNAME) removes one part of the SQL and must violate a property:
 *   NO_TOKEN                    _lease_holds compares owners only
 *   NO_EXPIRY_CHECK             _lease_holds does not compare with the clock
 *   RENEW_REVIVES               renew does not compare with the clock
 *   RECOVER_BLINDLY             transition does not check again what `expired` read
 *   NO_RECOVERY                 no sweeper runs
 *   PROMOTE_IN_SAME_STATEMENT   promote sees the snapshot of the statement that freed the lane
 *   NO_PROMOTION                finishing promotes no job
 *   PROMOTE_ONCE                a promotion that missed is not repeated
 *   DEMOTE_WITHOUT_GUARD        claim puts a job behind a holder that may be leaving
 *   RETRY_LETS_GO               a job in backoff leaves its lane
 *   NO_HOLDER_INDEX             without the unique index, and without the advisory lock
 */

#ifndef JOBS
#define JOBS 3
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2
#endif
#ifndef SWEEPERS
#define SWEEPERS 1
#endif
#define TOKENS (JOBS * MAX_ATTEMPTS + 1)
#define NONE 255
#define OPERATOR (WORKERS + SWEEPERS)

/* Stages, as in model/state.py; jobs that are `absent` or `left` are not in the live table. */
mtype = { absent, scheduled, ready, lane_head, follower, leased, backoff, left };

/* Committed rows. */
mtype stage[JOBS] = absent;
byte owner[JOBS] = NONE;
byte token[JOBS];
byte attempt[JOBS];
bool expired[JOBS];
bool cancel_requested[JOBS];
byte next_token = 1;

/* Locks: the transaction with FOR UPDATE, the number of FOR KEY SHARE; the transaction that is
 * adding the lane's index entry; the lane's advisory lock. */
byte locked[JOBS] = NONE;
byte shares[JOBS];
byte adding = NONE;
byte advisory = NONE;

/* Known to the assertions only. */
bool lost[TOKENS + 1];
byte finished[TOKENS + 1];

#define HOLDS(s) (s == lane_head || s == leased || s == backoff)
#define IN_LANE(s) (s == ready || s == follower)
#define READY(s) (s == ready || s == lane_head)

inline find_holder(found) {
    found = NONE;
    for (i : 0 .. JOBS - 1) {
        if
        :: HOLDS(stage[i]) -> found = i
        :: else
        fi
    }
    i = 0
}

inline find_first(found) {
    found = NONE;
    for (i : 0 .. JOBS - 1) {
        if
        :: found == NONE && IN_LANE(stage[i]) -> found = i
        :: else
        fi
    }
    i = 0
}

/* LANE: after every commit. */
inline check_lane() {
    n = 0;
    for (i : 0 .. JOBS - 1) {
        if
        :: HOLDS(stage[i]) -> n++
        :: else
        fi
    }
    assert(n <= 1);
    i = 0;
    n = 0
}

inline check_order(j) {
#ifdef LATECOMER
    skip /* a job that enters the lane later may be older */
#else
    for (i : 0 .. JOBS - 1) {
        if
        :: i < j -> assert(stage[i] == left)
        :: else
        fi
    }
    i = 0
#endif
}

inline release(me) {
    for (i : 0 .. JOBS - 1) {
        if
        :: locked[i] == me -> locked[i] = NONE
        :: else
        fi
    }
    i = 0;
    if
    :: adding == me -> adding = NONE
    :: else
    fi;
    if
    :: advisory == me -> advisory = NONE
    :: else
    fi
}

#define FREE(j) (locked[j] == NONE && shares[j] == 0)

/* Is another transaction changing the lane's entry in job_holder? A holder that is locked for
 * update may be leaving. */
#define LEAVING(me, j) (HOLDS(stage[j]) && locked[j] != NONE && locked[j] != me)
#if JOBS > 2
#define ENTRY_BUSY(me) ((adding != NONE && adding != me) || \
    LEAVING(me, 0) || LEAVING(me, 1) || LEAVING(me, 2))
#else
#define ENTRY_BUSY(me) ((adding != NONE && adding != me) || LEAVING(me, 0) || LEAVING(me, 1))
#endif

/* promote.sql, in the transaction `me` that removes job `gone` (NONE: a repeated promotion). Its
 * snapshot is one step; its locks and the index are another step, which may have to wait. */
inline promote(me, gone) {
    d_step {
#ifdef PROMOTE_IN_SAME_STATEMENT
        if
        :: gone == NONE -> find_first(snap_first)
        :: else /* the snapshot from before the wait for the holder's row */
        fi;
#else
        find_first(snap_first);
#endif
        find_holder(snap_holder);
        if
        :: snap_holder != NONE && snap_holder != gone -> snap_first = NONE
        :: else
        fi
    };
    atomic {
        if
        :: snap_first == NONE -> skip
        :: else ->
            if
            :: stage[snap_first] == ready && FREE(snap_first) ->
                locked[snap_first] = me; promoted = snap_first
            :: stage[snap_first] == ready && !FREE(snap_first) -> missed = true /* skip locked */
            :: stage[snap_first] == follower && FREE(snap_first) -> /* otherwise it waits */
                locked[snap_first] = me; promoted = snap_first
            :: !IN_LANE(stage[snap_first]) -> missed = true
            fi
        fi;
        if
        :: promoted == NONE -> skip
        :: else ->
            /* job_holder: wait while the entry is being changed; refused if there is another. */
            !ENTRY_BUSY(me);
            find_holder(snap_holder);
            if
            :: snap_holder != NONE && snap_holder != gone -> refused = true
            :: else -> adding = me
            fi
        fi
    }
}

/* `then_promote`: a promotion that missed is repeated in its own transaction. */
inline promote_again(me) {
    do
    :: !missed -> break
    :: else ->
#ifdef PROMOTE_ONCE
        missed = false;
#else
        missed = false;
        promote(me, NONE);
        d_step {
            if
            :: refused -> missed = true
            :: promoted != NONE -> stage[promoted] = lane_head
            :: else
            fi;
            refused = false;
            promoted = NONE;
            snap_first = NONE;
            snap_holder = NONE;
            release(me);
            check_lane()
        }
#endif
    od
}

/* A job leaves: by succeed.sql (its owner) or transition.sql (its owner, the sweeper, an operator).
 * `fits`: whether the row, once it is locked, still is as the caller read it. */
inline leave(me, j, fits, finishes) {
    do
    :: is_over -> break
    :: else ->
#ifdef PROMOTE_IN_SAME_STATEMENT
        d_step { find_first(snap_first) };
#endif
        /* The fence is checked under the row's lock, so that the row cannot change afterwards. */
        atomic {
            FREE(j) -> locked[j] = me;
            is_held = (fits);
            assert(!is_held || finishes == 0 || !lost[finishes]) /* FENCE */
        };
        if
        :: d_step { !is_held -> release(me); snap_first = NONE; is_over = true }
        :: is_held ->
#ifdef NO_PROMOTION
            skip;
#else
            promote(me, j);
#endif
            d_step {
                if
                :: refused -> skip /* rolled back and repeated */
                :: else ->
                    if
                    :: finishes != 0 ->
                        assert(finished[finishes] == 0); /* FENCE */
                        finished[finishes]++
                    :: else
                    fi;
                    is_over = true;
                    stage[j] = left;
                    owner[j] = NONE;
                    token[j] = 0;
                    expired[j] = false;
                    cancel_requested[j] = false;
                    if
                    :: promoted != NONE -> stage[promoted] = lane_head
                    :: else
                    fi
                fi;
                is_held = false;
                if
                :: refused -> missed = false
                :: else
                fi;
                refused = false;
                promoted = NONE;
                snap_first = NONE;
                snap_holder = NONE;
                release(me);
                check_lane()
            };
            if
            :: missed -> promote_again(me)
            :: else
            fi
        fi
    od;
    is_over = false
}

/* _lease_holds.sql */
#ifdef NO_TOKEN
#define FITS_TOKEN(j, t) true
#else
#define FITS_TOKEN(j, t) (token[j] == t)
#endif
#ifdef NO_EXPIRY_CHECK
#define IN_TIME(j) true
#else
#define IN_TIME(j) (!expired[j])
#endif
#define LEASE_HOLDS(me, j, t) \
    (stage[j] == leased && owner[j] == me && FITS_TOKEN(j, t) && IN_TIME(j))
#ifdef RENEW_REVIVES
#define RENEWABLE(me, j, t) (stage[j] == leased && owner[j] == me && FITS_TOKEN(j, t))
#else
#define RENEWABLE(me, j, t) LEASE_HOLDS(me, j, t)
#endif

/* claim.sql: one candidate, `c`. Its snapshot is one step; the lock and its consequences are a
 * second step, which may have to wait for the index; then the commit. */
inline claim(me) {
    atomic {
        if
        :: !FREE(c) || !READY(stage[c]) -> skip /* skip locked; the row is read again */
        :: else ->
            locked[c] = me;
            if
            :: stage[c] == lane_head -> goes = true
            :: stage[c] == ready && snap_holder == NONE && snap_first == c ->
#ifdef NO_HOLDER_INDEX
                goes = true
#else
                if
                :: advisory == NONE ->
                    advisory = me;
                    !ENTRY_BUSY(me);
                    find_holder(snap_holder);
                    if
                    :: snap_holder == NONE -> adding = me; goes = true
                    :: else -> refused = true
                    fi
                :: else
                fi
#endif
            :: else
            fi;
            /* guard and ahead: a job becomes a follower only of one that cannot leave meanwhile. */
            if
            :: goes || refused -> skip
            :: !goes && !refused && snap_holder != NONE ->
                follow(snap_holder, HOLDS(stage[snap_holder]))
            :: (!goes && !refused && snap_holder == NONE && snap_first != c
                    && snap_first != NONE) ->
                follow(snap_first, (stage[snap_first] == ready))
            :: else
            fi
        fi
    };
    d_step {
        if
        :: goes ->
            stage[c] = leased;
            owner[c] = me;
            token[c] = next_token;
            my_token = next_token;
            next_token++;
            attempt[c]++;
            expired[c] = false;
            mine = c;
            check_order(c) /* LANE */
        :: !goes && follows -> stage[c] = follower
        :: else
        fi;
        if
        :: share != NONE -> shares[share]--
        :: else
        fi;
        release(me);
        check_lane();
        share = NONE; goes = false; follows = false; refused = false;
        snap_holder = NONE; snap_first = NONE; c = NONE
    }
}

inline follow(j, is_there) {
#ifdef DEMOTE_WITHOUT_GUARD
    follows = true
#else
    if
    :: locked[j] == NONE && (is_there) -> shares[j]++; share = j; follows = true
    :: else
    fi
#endif
}

#define LOCALS \
    byte i; byte n; byte snap_holder = NONE; byte snap_first = NONE; \
    byte promoted = NONE; byte share = NONE; \
    bool missed; bool refused; bool goes; bool follows; bool is_over; bool is_held

#define DONE (stage[0] == left && stage[JOBS - 1] == left && (JOBS < 3 || stage[JOBS - 2] == left))

proctype Worker(byte me) {
    byte c = NONE;
    byte mine = NONE;
    byte my_token;
    byte late = NONE; /* the job with an ending that was sent and has not arrived */
    byte late_token;
    LOCALS;

    do
    :: DONE && mine == NONE && late == NONE -> break
    :: d_step { mine == NONE && READY(stage[0]) -> c = 0;
            find_holder(snap_holder); find_first(snap_first) };
        claim(me)
    :: d_step { mine == NONE && READY(stage[1]) -> c = 1;
            find_holder(snap_holder); find_first(snap_first) };
        claim(me)
#if JOBS > 2
    :: d_step { mine == NONE && READY(stage[2]) -> c = 2;
            find_holder(snap_holder); find_first(snap_first) };
        claim(me)
#endif
    :: late != NONE -> /* the ending that it sent before it was frozen arrives */
        leave(me, late, LEASE_HOLDS(me, late, late_token), late_token);
        d_step { late = NONE; late_token = 0 }
    :: mine != NONE -> /* succeed; or transition after a cancel request, with the same fence */
        leave(me, mine, LEASE_HOLDS(me, mine, my_token), my_token);
        d_step { mine = NONE; my_token = 0 }
    :: d_step { (mine != NONE && RENEWABLE(me, mine, my_token) && locked[mine] == NONE
            && (expired[mine] || lost[my_token])) -> /* renew: the cases where it would be wrong */
            assert(!lost[my_token]); /* FENCE */
            expired[mine] = false }
    :: d_step { mine != NONE && !RENEWABLE(me, mine, my_token) ->
            mine = NONE; my_token = 0 } /* renew returned that the lease is lost */
    :: d_step { mine != NONE && late == NONE -> /* frozen */
            late = mine; late_token = my_token; mine = NONE; my_token = 0 }
    od
}

#ifndef NO_RECOVERY
/* expired.sql reads without a lock; transition.sql checks again. A job with attempts left waits in
 * backoff and still holds its lane; make_ready.sql ends the backoff. */
#ifdef RECOVER_BLINDLY
#define STILL_EXPIRED (stage[e] == leased)
#else
#define STILL_EXPIRED (stage[e] == leased && token[e] == seen && expired[e])
#endif
#ifdef RETRY_LETS_GO
#define IN_BACKOFF scheduled
#define AFTER_BACKOFF ready
#else
#define IN_BACKOFF backoff
#define AFTER_BACKOFF lane_head
#endif
proctype Sweeper(byte me) {
    byte e = NONE;
    byte seen;
    LOCALS;

    do
    :: DONE -> break
    :: atomic { stage[0] == IN_BACKOFF && FREE(0) -> stage[0] = AFTER_BACKOFF }
    :: atomic { stage[1] == IN_BACKOFF && FREE(1) -> stage[1] = AFTER_BACKOFF }
#if JOBS > 2
    :: atomic { stage[2] == IN_BACKOFF && FREE(2) -> stage[2] = AFTER_BACKOFF }
#endif
    :: else ->
        if
        :: atomic { stage[0] == leased && expired[0] -> e = 0; seen = token[0] }
        :: atomic { stage[1] == leased && expired[1] -> e = 1; seen = token[1] }
#if JOBS > 2
        :: atomic { stage[2] == leased && expired[2] -> e = 2; seen = token[2] }
#endif
        :: atomic { (stage[0] == IN_BACKOFF || stage[1] == IN_BACKOFF
                || stage[JOBS - 1] == IN_BACKOFF) -> skip }
        :: atomic { DONE -> skip }
        fi;
        if
        :: e == NONE -> skip
        :: e != NONE && (attempt[e] >= MAX_ATTEMPTS || cancel_requested[e]) ->
            leave(me, e, STILL_EXPIRED, 0)
        :: else ->
            atomic { FREE(e) -> locked[e] = me };
            d_step {
                if
                :: STILL_EXPIRED ->
                    assert(lost[token[e]]); /* FENCE: a valid lease is not recovered */
                    stage[e] = IN_BACKOFF;
                    owner[e] = NONE;
                    token[e] = 0;
                    expired[e] = false
                :: else
                fi;
                release(me);
                check_lane()
            }
#ifdef RETRY_LETS_GO
            missed = true;
            promote_again(me);
            skip
#endif
        fi;
        d_step { e = NONE; seen = 0 }
    od
}
#endif

/* request_stop.sql: store a cancel request; or transition.sql: remove a job that is not leased. */
proctype Operator() {
    byte j = NONE;
    mtype seen;
    LOCALS;

    if
    :: j = 0
    :: j = 1
    :: skip
    fi;
    if
    :: j == NONE -> skip
    :: else ->
        seen = stage[j];
        if
        :: seen == leased ->
            atomic { FREE(j) -> if :: stage[j] == leased -> cancel_requested[j] = true :: else fi }
        :: seen == ready || seen == follower || seen == lane_head || seen == backoff ->
            leave(OPERATOR, j, (stage[j] == seen), 0)
        :: else
        fi
    fi
}

/* enqueue.sql: one job after another, in the order of their ids. */
proctype Producer() {
    byte k;
#ifdef LATECOMER
    k = 1;
#endif
    do
    :: k == JOBS -> break
    :: else -> d_step { stage[k] = ready; k++ }
    od;
#ifdef LATECOMER
    stage[0] = ready /* make_ready.sql: its delay is over */
#endif
}

/* A lease may expire at any time. */
proctype Clock() {
    do
    :: DONE -> break
    :: d_step { stage[0] == leased && !expired[0] -> expired[0] = true; lost[token[0]] = true }
    :: d_step { stage[1] == leased && !expired[1] -> expired[1] = true; lost[token[1]] = true }
#if JOBS > 2
    :: d_step { stage[2] == leased && !expired[2] -> expired[2] = true; lost[token[2]] = true }
#endif
    od
}

init {
    byte number;
    atomic {
        for (number : 0 .. WORKERS - 1) {
            run Worker(number)
        }
#ifndef NO_RECOVERY
        for (number : WORKERS .. WORKERS + SWEEPERS - 1) {
            run Sweeper(number)
        }
#endif
#ifndef NO_OPERATOR
        run Operator();
#endif
        run Producer();
        run Clock()
    }
}
