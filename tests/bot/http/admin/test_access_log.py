"""bot.http.admin.access_log: a view is recorded before the page is shown, and part of the person's export."""

from storage.people import personal_data
from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


async def test_a_view_is_in_the_persons_export(operator: Operator) -> None:
    """A recorded view is in the person's export, and is erased with the person."""
    known = await pupil(operator.heed)
    await operator.text(f"/admin/updates/{known.update_id}")
    database = operator.heed.core.database
    rows = (await database.read(lambda s: personal_data.everything(s, known.id)))["looked_at_by_the_operator"]
    assert [(row["page"], row["about"]) for row in rows] == [("updates", known.update_id)]
    await operator.heed.core.gateway.forget(known.id)
    assert (await operator.get(f"/admin/updates/{known.update_id}")).status == 404
