/* The lease protocol on PostgreSQL, for Spin: `scripts/model` runs it.
 *
 * One lane of JOBS jobs, WORKERS workers, a sweeper, an operator, a producer and the database's
 * clock. Each step bears the name of its statement in src/freehold/store/postgres/sql/. What is
 * modelled of PostgreSQL is what the protocol leans on:
 *
 *   - a statement reads a snapshot of what was committed when it began (snap_*), but a row that it
 *     locks is looked at again, as it is now;
 *   - FOR UPDATE waits, or skips, where another transaction has locked the row; FOR KEY SHARE can
 *     be held by many, and keeps the row from being taken away;
 *   - what a transaction writes is seen by nobody before its commit; its locks last until then;
 *   - a unique index (job_holder) lets a writer wait for whoever is just changing the same entry,
 *     and refuses the second entry.
 *
 * Time is the clock's nondeterminism: any lease may run out at any moment, also of a worker that
 * still runs (it was frozen) and whose words arrive later (it can put them aside and go on).
 *
 * Promised, as assertions:
 *   FENCE    no finish and no renewal of a lost lease is accepted, and one finish per lease
 *   LANE     never two holders, and nobody is leased before an older one has left
 * and as the absence of invalid ends:
 *   ENDS     every job ends: none is lost, and no lane is stuck
 *
 * Each mutant (-DNAME) takes one thought out of the SQL, and must fail:
 *   NO_TOKEN                    _lease_holds compares owners only
 *   NO_EXPIRY_CHECK             _lease_holds does not ask the clock
 *   RENEW_REVIVES               renew does not ask the clock
 *   RECOVER_BLINDLY             settle does not look again at what `expired` read
 *   NO_RECOVERY                 nobody sweeps
 *   PROMOTE_IN_SAME_STATEMENT   promote sees the snapshot of the statement that freed the lane
 *   NO_PROMOTION                finishing promotes nobody
 *   PROMOTE_ONCE                a promotion that missed is not asked again
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
#define NOBODY 255
#define OPERATOR (WORKERS + SWEEPERS)

/* Stages, as in model/state.py; `unborn` and `left` are not in the live table. */
mtype = { unborn, w, r, R, f, h, b, left };

/* What is committed. */
mtype stage[JOBS] = unborn;
byte owner[JOBS] = NOBODY;
byte token[JOBS];
byte attempt[JOBS];
bool expired[JOBS];
bool asked[JOBS];
byte next_token = 1;

/* Locks: whose FOR UPDATE, how many FOR KEY SHARE; the index entry of the lane that somebody is
 * just adding; the lane's advisory lock. */
byte locked[JOBS] = NOBODY;
byte shares[JOBS];
byte adding = NOBODY;
byte advisory = NOBODY;

/* What only the checker knows. */
bool lost[TOKENS + 1];
byte finished[TOKENS + 1];

#define HOLDS(s) (s == R || s == h || s == b)
#define IN_LANE(s) (s == r || s == f)
#define READY(s) (s == r || s == R)

inline find_holder(found) {
    found = NOBODY;
    for (i : 0 .. JOBS - 1) {
        if
        :: HOLDS(stage[i]) -> found = i
        :: else
        fi
    }
    i = 0
}

inline find_first(found) {
    found = NOBODY;
    for (i : 0 .. JOBS - 1) {
        if
        :: found == NOBODY && IN_LANE(stage[i]) -> found = i
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
    skip /* whoever comes into the lane later is late */
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
        :: locked[i] == me -> locked[i] = NOBODY
        :: else
        fi
    }
    i = 0;
    if
    :: adding == me -> adding = NOBODY
    :: else
    fi;
    if
    :: advisory == me -> advisory = NOBODY
    :: else
    fi
}

#define FREE(j) (locked[j] == NOBODY && shares[j] == 0)

/* Is the lane's entry in job_holder being changed by somebody else? A holder that is locked for
 * update may be leaving. */
#define LEAVING(me, j) (HOLDS(stage[j]) && locked[j] != NOBODY && locked[j] != me)
#if JOBS > 2
#define ENTRY_BUSY(me) ((adding != NOBODY && adding != me) || \
    LEAVING(me, 0) || LEAVING(me, 1) || LEAVING(me, 2))
#else
#define ENTRY_BUSY(me) ((adding != NOBODY && adding != me) || LEAVING(me, 0) || LEAVING(me, 1))
#endif

/* promote.sql, in the transaction `me` that takes job `gone` away (or NOBODY: asked again). Its
 * snapshot is one step; its locks and the index are another one, which may have to wait. */
inline promote(me, gone) {
    d_step {
#ifdef PROMOTE_IN_SAME_STATEMENT
        if
        :: gone == NOBODY -> find_first(snap_first)
        :: else /* as it was before the row of the holder was waited for */
        fi;
#else
        find_first(snap_first);
#endif
        find_holder(snap_holder);
        if
        :: snap_holder != NOBODY && snap_holder != gone -> snap_first = NOBODY
        :: else
        fi
    };
    atomic {
        if
        :: snap_first == NOBODY -> skip
        :: else ->
            if
            :: stage[snap_first] == r && FREE(snap_first) ->
                locked[snap_first] = me; promoted = snap_first
            :: stage[snap_first] == r && !FREE(snap_first) -> missed = true /* skip locked */
            :: stage[snap_first] == f && FREE(snap_first) -> /* or else it waits */
                locked[snap_first] = me; promoted = snap_first
            :: !IN_LANE(stage[snap_first]) -> missed = true
            fi
        fi;
        if
        :: promoted == NOBODY -> skip
        :: else ->
            /* job_holder: wait for whoever changes the entry; refused if there is another one. */
            !ENTRY_BUSY(me);
            find_holder(snap_holder);
            if
            :: snap_holder != NOBODY && snap_holder != gone -> refused = true
            :: else -> adding = me
            fi
        fi
    }
}

/* `freeing`: the promotion that missed is asked again, in a transaction of its own. */
inline promote_again(me) {
    do
    :: !missed -> break
    :: else ->
#ifdef PROMOTE_ONCE
        missed = false;
#else
        missed = false;
        promote(me, NOBODY);
        d_step {
            if
            :: refused -> missed = true
            :: promoted != NOBODY -> stage[promoted] = R
            :: else
            fi;
            refused = false;
            promoted = NOBODY;
            snap_first = NOBODY;
            snap_holder = NOBODY;
            release(me);
            check_lane()
        }
#endif
    od
}

/* A job leaves: by succeed.sql (its owner), by settle.sql (its owner, the sweeper, an operator).
 * `fits` says whether the row, once it is locked, still is what the caller saw. */
inline leave(me, j, fits, finishes) {
    do
    :: is_over -> break
    :: else ->
#ifdef PROMOTE_IN_SAME_STATEMENT
        d_step { find_first(snap_first) };
#endif
        /* The fence is asked where the row is locked: from here on nobody can take it away. */
        atomic {
            FREE(j) -> locked[j] = me;
            is_held = (fits);
            assert(!is_held || finishes == 0 || !lost[finishes]) /* FENCE */
        };
        if
        :: d_step { !is_held -> release(me); snap_first = NOBODY; is_over = true }
        :: is_held ->
#ifdef NO_PROMOTION
            skip;
#else
            promote(me, j);
#endif
            d_step {
                if
                :: refused -> skip /* rolled back, and done once more */
                :: else ->
                    if
                    :: finishes != 0 ->
                        assert(finished[finishes] == 0); /* FENCE */
                        finished[finishes]++
                    :: else
                    fi;
                    is_over = true;
                    stage[j] = left;
                    owner[j] = NOBODY;
                    token[j] = 0;
                    expired[j] = false;
                    asked[j] = false;
                    if
                    :: promoted != NOBODY -> stage[promoted] = R
                    :: else
                    fi
                fi;
                is_held = false;
                if
                :: refused -> missed = false
                :: else
                fi;
                refused = false;
                promoted = NOBODY;
                snap_first = NOBODY;
                snap_holder = NOBODY;
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
    (stage[j] == h && owner[j] == me && FITS_TOKEN(j, t) && IN_TIME(j))
#ifdef RENEW_REVIVES
#define RENEWABLE(me, j, t) (stage[j] == h && owner[j] == me && FITS_TOKEN(j, t))
#else
#define RENEWABLE(me, j, t) LEASE_HOLDS(me, j, t)
#endif

/* claim.sql: one candidate, `c`. Its snapshot is one step, the lock with all that follows from it
 * another one, which may have to wait for the index; then the commit. */
inline claim(me) {
    atomic {
        if
        :: !FREE(c) || !READY(stage[c]) -> skip /* skip locked; and looked at again */
        :: else ->
            locked[c] = me;
            if
            :: stage[c] == R -> goes = true
            :: stage[c] == r && snap_holder == NOBODY && snap_first == c ->
#ifdef NO_HOLDER_INDEX
                goes = true
#else
                if
                :: advisory == NOBODY ->
                    advisory = me;
                    !ENTRY_BUSY(me);
                    find_holder(snap_holder);
                    if
                    :: snap_holder == NOBODY -> adding = me; goes = true
                    :: else -> refused = true
                    fi
                :: else
                fi
#endif
            :: else
            fi;
            /* guard and ahead: a loser follows only somebody who cannot leave meanwhile. */
            if
            :: goes || refused -> skip
            :: !goes && !refused && snap_holder != NOBODY ->
                follow(snap_holder, HOLDS(stage[snap_holder]))
            :: (!goes && !refused && snap_holder == NOBODY && snap_first != c
                    && snap_first != NOBODY) ->
                follow(snap_first, (stage[snap_first] == r))
            :: else
            fi
        fi
    };
    d_step {
        if
        :: goes ->
            stage[c] = h;
            owner[c] = me;
            token[c] = next_token;
            my_token = next_token;
            next_token++;
            attempt[c]++;
            expired[c] = false;
            mine = c;
            check_order(c) /* LANE */
        :: !goes && follows -> stage[c] = f
        :: else
        fi;
        if
        :: share != NOBODY -> shares[share]--
        :: else
        fi;
        release(me);
        check_lane();
        share = NOBODY; goes = false; follows = false; refused = false;
        snap_holder = NOBODY; snap_first = NOBODY; c = NOBODY
    }
}

inline follow(j, is_there) {
#ifdef DEMOTE_WITHOUT_GUARD
    follows = true
#else
    if
    :: locked[j] == NOBODY && (is_there) -> shares[j]++; share = j; follows = true
    :: else
    fi
#endif
}

#define LOCALS \
    byte i; byte n; byte snap_holder = NOBODY; byte snap_first = NOBODY; \
    byte promoted = NOBODY; byte share = NOBODY; \
    bool missed; bool refused; bool goes; bool follows; bool is_over; bool is_held

#define DONE (stage[0] == left && stage[JOBS - 1] == left && (JOBS < 3 || stage[JOBS - 2] == left))

proctype Worker(byte me) {
    byte c = NOBODY;
    byte mine = NOBODY;
    byte my_token;
    byte late = NOBODY; /* words that were said, and have not arrived yet */
    byte late_token;
    LOCALS;

    do
    :: DONE && mine == NOBODY && late == NOBODY -> break
    :: d_step { mine == NOBODY && READY(stage[0]) -> c = 0;
            find_holder(snap_holder); find_first(snap_first) };
        claim(me)
    :: d_step { mine == NOBODY && READY(stage[1]) -> c = 1;
            find_holder(snap_holder); find_first(snap_first) };
        claim(me)
#if JOBS > 2
    :: d_step { mine == NOBODY && READY(stage[2]) -> c = 2;
            find_holder(snap_holder); find_first(snap_first) };
        claim(me)
#endif
    :: late != NOBODY -> /* what it said before it was frozen arrives only now */
        leave(me, late, LEASE_HOLDS(me, late, late_token), late_token);
        d_step { late = NOBODY; late_token = 0 }
    :: mine != NOBODY -> /* succeed; or settle, where a cancel was asked: fenced alike */
        leave(me, mine, LEASE_HOLDS(me, mine, my_token), my_token);
        d_step { mine = NOBODY; my_token = 0 }
    :: d_step { (mine != NOBODY && RENEWABLE(me, mine, my_token) && locked[mine] == NOBODY
            && (expired[mine] || lost[my_token])) -> /* renew: it changes something only wrongly */
            assert(!lost[my_token]); /* FENCE */
            expired[mine] = false }
    :: d_step { mine != NOBODY && !RENEWABLE(me, mine, my_token) ->
            mine = NOBODY; my_token = 0 } /* renew told that the lease is lost: it stops */
    :: d_step { mine != NOBODY && late == NOBODY -> /* frozen */
            late = mine; late_token = my_token; mine = NOBODY; my_token = 0 }
    od
}

#ifndef NO_RECOVERY
/* expired.sql reads without a lock; settle.sql looks again. A job with attempts left waits in
 * backoff, still the holder of its lane; make_ready.sql ends the backoff. */
#ifdef RECOVER_BLINDLY
#define STILL_EXPIRED (stage[e] == h)
#else
#define STILL_EXPIRED (stage[e] == h && token[e] == seen && expired[e])
#endif
#ifdef RETRY_LETS_GO
#define IN_BACKOFF w
#define AFTER_BACKOFF r
#else
#define IN_BACKOFF b
#define AFTER_BACKOFF R
#endif
proctype Sweeper(byte me) {
    byte e = NOBODY;
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
        :: atomic { stage[0] == h && expired[0] -> e = 0; seen = token[0] }
        :: atomic { stage[1] == h && expired[1] -> e = 1; seen = token[1] }
#if JOBS > 2
        :: atomic { stage[2] == h && expired[2] -> e = 2; seen = token[2] }
#endif
        :: atomic { (stage[0] == IN_BACKOFF || stage[1] == IN_BACKOFF
                || stage[JOBS - 1] == IN_BACKOFF) -> skip }
        :: atomic { DONE -> skip }
        fi;
        if
        :: e == NOBODY -> skip
        :: e != NOBODY && (attempt[e] >= MAX_ATTEMPTS || asked[e]) ->
            leave(me, e, STILL_EXPIRED, 0)
        :: else ->
            atomic { FREE(e) -> locked[e] = me };
            d_step {
                if
                :: STILL_EXPIRED ->
                    assert(lost[token[e]]); /* FENCE: whose lease holds is not recovered */
                    stage[e] = IN_BACKOFF;
                    owner[e] = NOBODY;
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
        d_step { e = NOBODY; seen = 0 }
    od
}
#endif

/* ask.sql: leave a cancel request; or settle.sql: take away a job that nobody has leased. */
proctype Operator() {
    byte j = NOBODY;
    mtype seen;
    LOCALS;

    if
    :: j = 0
    :: j = 1
    :: skip
    fi;
    if
    :: j == NOBODY -> skip
    :: else ->
        seen = stage[j];
        if
        :: seen == h ->
            atomic { FREE(j) -> if :: stage[j] == h -> asked[j] = true :: else fi }
        :: seen == r || seen == f || seen == R || seen == b ->
            leave(OPERATOR, j, (stage[j] == seen), 0)
        :: else
        fi
    fi
}

/* enqueue.sql: one after the other, in the order of their ids. */
proctype Producer() {
    byte k;
#ifdef LATECOMER
    k = 1;
#endif
    do
    :: k == JOBS -> break
    :: else -> d_step { stage[k] = r; k++ }
    od;
#ifdef LATECOMER
    stage[0] = r /* make_ready.sql: it had to wait for its time */
#endif
}

/* A lease runs out whenever the clock says so. */
proctype Clock() {
    do
    :: DONE -> break
    :: d_step { stage[0] == h && !expired[0] -> expired[0] = true; lost[token[0]] = true }
    :: d_step { stage[1] == h && !expired[1] -> expired[1] = true; lost[token[1]] = true }
#if JOBS > 2
    :: d_step { stage[2] == h && !expired[2] -> expired[2] = true; lost[token[2]] = true }
#endif
    od
}

init {
    byte who;
    atomic {
        for (who : 0 .. WORKERS - 1) {
            run Worker(who)
        }
#ifndef NO_RECOVERY
        for (who : WORKERS .. WORKERS + SWEEPERS - 1) {
            run Sweeper(who)
        }
#endif
#ifndef NO_OPERATOR
        run Operator();
#endif
        run Producer();
        run Clock()
    }
}
