"""Tenants are made, listed, paused, weighed, migrated and dropped; each step can be repeated."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput, BadName, BadSettings, Refused, TenantExists, TenantNotFound
from freehold.model.tenant import HOME_SHARD, TenantState
from tests.tenants.rooms import EAST, Rooms, add, ask

BAD_NAMES = ["", "Acme", "a-b", "a.b", 'a"b', "a;drop", "1a", "a" * 32, "ä", "a b", "a\0", "../a"]


@pytest.mark.requirement("S4.2")
def test_a_tenant_is_made_listed_and_dropped(house: Rooms) -> None:
    made = house.tenancy.create("acme", weight=2.5, max_slots=3)
    assert (made.name, made.place, made.state) == ("acme", HOME_SHARD, TenantState.ACTIVE)
    assert (made.weight, made.max_slots) == (2.5, 3)
    house.tenancy.create("beta", EAST)
    assert [(line.name, line.place) for line in house.tenancy.all()] == [
        ("acme", HOME_SHARD),
        ("beta", EAST),
    ]
    assert add(house.inside("acme")) == add(house.inside("beta")) == 1
    house.tenancy.drop("acme", force=True)
    assert [line.name for line in house.tenancy.all()] == ["beta"]
    assert not house.places[HOME_SHARD].holds("acme")
    house.tenancy.create("acme")
    assert house.inside("acme").counts().ready == 0


def test_a_creation_that_died_in_the_middle_is_repeated(house: Rooms) -> None:
    house.places[HOME_SHARD].create("acme")
    assert house.tenancy.all() == []
    house.tenancy.create("acme")
    with pytest.raises(TenantExists, match="acme already"):
        house.tenancy.create("acme")


def test_what_somebody_left_there_with_jobs_is_not_adopted(house: Rooms) -> None:
    house.places[HOME_SHARD].create("acme")
    add(house.at(HOME_SHARD, "acme"))
    with pytest.raises(TenantExists, match="with jobs"):
        house.tenancy.create("acme")


def test_a_tenant_with_live_jobs_is_dropped_by_force_only(house: Rooms) -> None:
    house.tenancy.create("acme")
    add(house.inside("acme"))
    with pytest.raises(Refused, match=r"1 live jobs.*--force"):
        house.tenancy.drop("acme")
    assert house.inside("acme").counts().ready == 1


def test_a_drop_that_died_in_the_middle_is_repeated(house: Rooms) -> None:
    house.tenancy.create("acme")
    house.places[HOME_SHARD].drop("acme")
    house.tenancy.drop("acme")
    assert house.tenancy.all() == []


@pytest.mark.requirement("S4.2")
def test_a_paused_tenant_takes_jobs_and_gives_none(house: Rooms) -> None:
    house.tenancy.create("acme")
    house.tenancy.pause("acme", "ann", "unpaid")
    line = house.tenancy.get("acme")
    assert (line.state, line.note) == (TenantState.PAUSED, "ann: unpaid")
    job = add(house.inside("acme"))
    assert house.inside("acme").claim(ask()) == []
    assert house.tenancy.resume("acme")
    assert not house.tenancy.resume("acme")
    assert house.tenancy.get("acme").state is TenantState.ACTIVE
    assert [attempt.job_id for attempt in house.inside("acme").claim(ask())] == [job]


def test_shares_are_set_and_checked(house: Rooms) -> None:
    house.tenancy.create("acme")
    house.tenancy.weigh("acme", 5, 7)
    line = house.tenancy.get("acme")
    assert (line.weight, line.max_slots) == (5.0, 7)
    for weight, max_slots in ((0, None), (-1, None), (float("nan"), None), (1, 0)):
        with pytest.raises(BadInput, match="give"):
            house.tenancy.weigh("acme", weight, max_slots)
    assert house.tenancy.get("acme") == line


def test_one_that_cannot_be_migrated_does_not_stop_the_others(house: Rooms) -> None:
    for name in ("acme", "beta", "gone"):
        house.tenancy.create(name)
    house.places[HOME_SHARD].drop("beta")
    told = {each.tenant: each for each in house.tenancy.migrate()}
    assert [told[name].trouble for name in ("acme", "gone")] == [None, None]
    assert told["beta"].trouble
    assert not house.places[HOME_SHARD].holds("beta")


def test_an_unknown_tenant_is_told_with_the_nearest_names(house: Rooms) -> None:
    house.tenancy.create("acme")
    with pytest.raises(TenantNotFound, match=r"'acmee'.*did you mean acme"):
        house.inside("acmee").counts()
    with pytest.raises(TenantNotFound, match="tenants create zzz"):
        house.tenancy.get("zzz")


def test_an_unknown_place_is_told_with_the_known_ones(house: Rooms) -> None:
    with pytest.raises(BadSettings, match=r"'west'.*known are east, home.*FREEHOLD_PLACE_WEST"):
        house.tenancy.create("acme", "west")
    assert house.tenancy.all() == []


@pytest.mark.requirement("S4.2")
def test_names_outside_the_whitelist_reach_no_database(house: Rooms) -> None:
    place = house.places[HOME_SHARD]
    for door in (
        house.tenancy.create,
        house.tenancy.open,
        house.tenancy.get,
        house.tenancy.drop,
        place.open,
        place.create,
        place.drop,
        place.holds,
        place.is_locked_up,
        place.let_out,
    ):
        for name in BAD_NAMES:
            with pytest.raises(BadName, match="not a usable name"):
                door(name)
