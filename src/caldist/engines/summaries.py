"""``summarize``: a table of any size to its joint distribution on a grid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from caldist.data import validate
from caldist.data.grid import MAX_BITS
from caldist.data.joint import INVALID, Joint
from caldist.engines.files import are_paths, open_files, reading, refuse_what_is_no_number
from caldist.errors import InvalidInput, answering

if TYPE_CHECKING:  # narwhals is loaded when a table comes
    from caldist.engines._columns import Columns
    from caldist.engines._query import TableRows

MEMORY_LIMIT = 2 * 2**30
_NAMED = 10  # columns that a message lists

Invalid = Literal["raise", "count"]
Summary: TypeAlias = "Joint | dict[Any, Joint]"  # without and with by

_COLUMN_OF = dict(
    zip(INVALID, ("label", "label", "prediction", "prediction", "weight"), strict=True)
)
_EXPLAINED = dict(
    zip(
        INVALID,
        (
            "null or NaN",
            "not 0 or 1",
            "null or NaN",
            "not between 0 and 1",
            "missing, negative or infinite",
        ),
        strict=True,
    )
)
_EXPLAINED_OF_CLASSES = _EXPLAINED | {
    "bad label": "none of the classes",
    "bad prediction": "not between 0 and 1, or in a row that does not sum to 1",
}


@overload
def summarize(
    table: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = None,
    pos_label: object = None,
    by: None = None,
    bits: int = 16,
    invalid: Invalid = "raise",
    second_order: bool = False,
    memory_limit: int | None = MEMORY_LIMIT,
) -> Joint: ...


@overload
def summarize(
    table: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = None,
    pos_label: object = None,
    by: str | Sequence[str],
    bits: int = 16,
    invalid: Invalid = "raise",
    second_order: bool = False,
    memory_limit: int | None = MEMORY_LIMIT,
) -> dict[Any, Joint]: ...


@answering
def summarize(
    table: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = None,
    pos_label: object = None,
    by: str | Sequence[str] | None = None,
    bits: int = 16,
    invalid: Invalid = "raise",
    second_order: bool = False,
    memory_limit: int | None = MEMORY_LIMIT,
) -> Summary:
    r"""Summarise a table of any size as the joint distribution of predictions and labels.

    Each prediction :math:`v` falls into the cell :math:`c = \lfloor v\,2^b \rfloor` of a grid of
    :math:`2^b` cells. For each cell and label the engine that holds the table counts rows and adds
    up the integers :math:`\lfloor f\,2^{31} \rfloor` and :math:`\lfloor f^2\,2^{31} \rfloor`, with
    :math:`f = v\,2^b - c`. With weights :math:`w` it adds up :math:`w`, :math:`w` times these
    integers and, for confidence intervals, :math:`w^2`, and counts rows. Only these sums come back.

    **What it means.** :func:`caldist.evaluate` gives every measure on the summary, with certified
    bounds for its value on the rows themselves.

    **What it estimates.** Nothing: without weights the summary is the same to the bit from every
    engine, any partition of the rows and any order of merging, and equal to
    ``Joint.from_arrays(…).coarsen(bits)``. With weights it is the same up to the rounding of sums:
    to the bit where they are exact, as those of moderate whole numbers are.

    **Cost.** One pass over the columns named; with ``by`` one more over those of ``by``, to bound
    the memory. What comes back has at most :math:`2^{b+1}` rows for each group.

    Parameters
    ----------
    table : table, path or list of paths
        A pandas, polars (also lazy) or dask frame, a pyarrow table, a duckdb relation, a pyspark
        frame or an ibis table; or files, which DuckDB reads: see
        :func:`caldist.engines.open_files`.
    y_true, y_prob : str
        The columns of labels (0 and 1, or Booleans) and of predicted probabilities.
    sample_weight : str, optional
        The column of weights, finite and not negative. Rows of weight 0 count in
        :attr:`Joint.n_rows` and nowhere else.
    pos_label : optional
        The label that counts as 1, where the column has two others than 0 and 1; one more pass over
        it finds them.
    by : str or list of str, optional
        The columns that define groups. Null and NaN are one group, of key None.
    bits : int
        The summary has 2^bits cells. A cell holds up to 2^32 rows without weights.
    invalid : {"raise", "count"}
        What to do if a row has no label or prediction, or none that is valid: raise, or leave it
        out and count it in :attr:`Joint.invalid`.
    second_order : bool
        Also add up squares. The bounds that :func:`caldist.evaluate` gives are then of second order
        in the width of a cell: of smCE with 16 bits about 1e-10 instead of 4e-6. It takes about a
        third more time.
    memory_limit : int or None
        The most bytes that the summary may take. It is checked before the cells come back; None
        leaves out the check.

    Returns
    -------
    Joint, or dict from group to Joint
        A group is a value of the column ``by``, or a tuple of values if ``by`` is a list. A group
        without valid rows has an empty joint.

    Raises
    ------
    ValueError
        If rows are invalid, with their number for each reason; if the table has no rows or not the
        columns; if a cell has too many rows; if a file is damaged.
    TypeError
        If a column holds something else than numbers.
    MemoryError
        If the summary would exceed ``memory_limit``; the message says how many bits would fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from caldist.engines import summarize
    >>> scores = pd.DataFrame(
    ...     {"label": [0, 1, 1, 0], "score": [0.2, 0.7, 0.9, 0.4], "day": [1, 1, 2, 2]}
    ... )
    >>> summarize(scores, y_true="label", y_prob="score").n_rows
    4
    >>> days = summarize(scores, y_true="label", y_prob="score", by="day")
    >>> {day: joint.n_rows for day, joint in days.items()}
    {1: 2, 2: 2}
    """

    def rows(columns: Columns) -> list[TableRows]:
        from caldist.engines._query import binary_rows  # loads narwhals

        return [binary_rows(columns, y_true, y_prob, sample_weight, by, pos_label)]

    columns = _columns(y_true, [y_prob], sample_weight)
    labels: Literal["numbers", "names"] | None = "numbers" if pos_label is None else None
    if isinstance(pos_label, str):
        labels = "names"
    (result,) = _run(table, rows, columns, by, bits, invalid, second_order, memory_limit, labels)
    return result


@answering
def summarize_top_label(
    table: Any,
    *,
    y_true: str,
    y_prob: Sequence[str],
    classes: Sequence[Any] | None = None,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    bits: int = 16,
    invalid: Invalid = "raise",
    second_order: bool = False,
    memory_limit: int | None = MEMORY_LIMIT,
) -> Summary:
    """Summarise the confidence in the most probable of several classes.

    The reduction is that of :func:`caldist.multiclass.top_label`, done by the engine: the
    prediction is the largest probability, the label whether its class is the true one; of equally
    probable classes the first counts.

    **What it means.** The joint of confidence and correctness: its measures say how far the
    confidence is from the accuracy.

    **What it estimates.** Nothing; it is equal to the summary of ``top_label(…)``, to the bit
    without weights.

    **Cost.** As :func:`summarize`, over the columns of all classes.

    Parameters
    ----------
    table, sample_weight, by, bits, invalid, memory_limit
        As in :func:`summarize`. A row whose probabilities do not sum to 1, within 0.0075, is a bad
        prediction.
    y_true : str
        The column of true classes.
    y_prob : list of str
        The columns of probabilities, one for each class.
    classes : list, optional
        The value of ``y_true`` that stands for each column of ``y_prob``; 0, 1, … by default.

    Returns
    -------
    Joint, or dict from group to Joint

    Examples
    --------
    >>> import pandas as pd
    >>> from caldist.engines import summarize_top_label
    >>> animals = pd.DataFrame(
    ...     {"animal": ["cat", "dog"], "p_cat": [0.75, 0.5], "p_dog": [0.25, 0.5]}
    ... )
    >>> joint = summarize_top_label(
    ...     animals, y_true="animal", y_prob=["p_cat", "p_dog"], classes=["cat", "dog"]
    ... )
    >>> joint.prediction, joint.mass1
    (array([0.5 , 0.75]), array([0., 1.]))
    """

    def rows(columns: Columns) -> list[TableRows]:
        from caldist.engines._multiclass import ClassRows  # loads narwhals

        return [ClassRows.of(columns, y_true, y_prob, classes, sample_weight, by).top_label()]

    columns = _columns(y_true, y_prob, sample_weight)
    (result,) = _run(table, rows, columns, by, bits, invalid, second_order, memory_limit)
    return result


@answering
def summarize_one_vs_rest(
    table: Any,
    *,
    y_true: str,
    y_prob: Sequence[str],
    classes: Sequence[Any] | None = None,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    bits: int = 16,
    invalid: Invalid = "raise",
    second_order: bool = False,
    memory_limit: int | None = MEMORY_LIMIT,
) -> list[Summary]:
    """Summarise one binary problem per class: this class or any other.

    The reduction is that of :func:`caldist.multiclass.one_vs_rest`, done by the engine.

    **What it means.** The joint of each class's probability and of whether it is the true class.

    **What it estimates.** Nothing; it is equal to the summaries of ``one_vs_rest(…)``, to the bit
    without weights.

    **Cost.** As many times that of :func:`summarize` as there are classes.

    Parameters
    ----------
    table, y_true, y_prob, classes, sample_weight, by, bits, invalid, second_order, memory_limit
        As in :func:`summarize_top_label`.

    Returns
    -------
    list of Joint, or list of dict from group to Joint
        One for each class, in the order of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from caldist.engines import summarize_one_vs_rest
    >>> table = pd.DataFrame({"y": [0, 1], "p0": [0.75, 0.5], "p1": [0.25, 0.5]})
    >>> [joint.mass1 for joint in summarize_one_vs_rest(table, y_true="y", y_prob=["p0", "p1"])]
    [array([0., 1.]), array([0., 1.])]
    """

    def rows(columns: Columns) -> list[TableRows]:
        from caldist.engines._multiclass import ClassRows  # loads narwhals

        return ClassRows.of(columns, y_true, y_prob, classes, sample_weight, by).one_vs_rest()

    columns = _columns(y_true, y_prob, sample_weight)
    return _run(table, rows, columns, by, bits, invalid, second_order, memory_limit)


def _columns(y_true: object, y_prob: Sequence[object], weight: object) -> dict[str, list[str]]:
    """Return the names of the columns of labels, predictions and weights; the rest is refused."""
    given = {"label": [y_true], "prediction": y_prob, "weight": [weight]}
    return {kind: [x for x in names if isinstance(x, str)] for kind, names in given.items()}


def _run(
    table: Any,
    rows: Callable[[Columns], list[TableRows]],
    columns: Mapping[str, list[str]],
    by: object,
    bits: int,
    invalid: str,
    second_order: bool,  # noqa: FBT001 -- passed on
    memory_limit: int | None,
    labels: Literal["numbers", "names"] | None = None,
) -> list[Summary]:
    """Run a query for each kind of rows.

    ``labels`` says how CSV files are read in the column of labels; None leaves that to DuckDB.
    """
    from caldist.engines import collect  # loads narwhals
    from caldist.engines._columns import Columns  # loads narwhals
    from caldist.engines._query import Query  # loads narwhals

    bits = validate.check_count("bits", bits, maximum=MAX_BITS)
    validate.check_choice("invalid", invalid, ("raise", "count"))
    second_order = validate.check_flag("second_order", second_order)
    if memory_limit is not None:
        memory_limit = validate.check_count("memory_limit", memory_limit)
    files = table if are_paths(table) else None
    names, numbers = [], [*columns["prediction"], *columns["weight"]]
    if labels == "names":
        names = columns["label"]
    elif labels == "numbers":
        numbers = columns["label"] + numbers
    results: list[Summary] = []
    with collect.engine_errors(), reading(files) if files else nullcontext():
        if files:
            table = open_files(files, numbers=numbers, names=names)
        for kind in rows(Columns(table)):
            query = Query.of(kind, bits, second_order=second_order)
            if memory_limit is not None:
                collect.check_memory(query, bits, memory_limit)
            joints = collect.joints(query, bits)
            if invalid == "raise":
                if files and any(joint.invalid for joint in joints.values()):
                    refuse_what_is_no_number(files, numbers)
                _refuse_invalid(joints, columns)
            results.append(_keyed(joints, by))
    return results


def _keyed(joints: dict[tuple[Any, ...], Joint], by: object) -> Summary:
    """Return the only joint without ``by``, and groups without a tuple around a single key."""
    if by is None:
        return joints[()]
    return {key[0]: joint for key, joint in joints.items()} if isinstance(by, str) else joints


def _refuse_invalid(joints: Mapping[Any, Joint], columns: Mapping[str, Sequence[str]]) -> None:
    """Raise if rows were left out, or all others have weight 0."""
    found = invalid_in_words(joints, columns)
    if not found:
        if () in joints and joints[()].total == 0:
            reason = "is 0 in every row, so that no row would count"
            raise InvalidInput(argument="sample_weight", reason=reason)
        return
    rounded = ""
    if len(columns["prediction"]) > 1 and any(
        joint.invalid.get("bad prediction") for joint in joints.values()
    ):
        rounded = " If probabilities were rounded, divide them by the sum of their row."
    raise InvalidInput(
        argument="table",
        reason=f"has rows that are not valid: {found}",
        remedy="Correct or filter them, or pass invalid='count' to leave them out and find their "
        f"number in Joint.invalid.{rounded}",
    )


def invalid_in_words(
    joints: Mapping[Any, Joint],
    columns: Mapping[str, Sequence[str]],
    allowed: Collection[str] = (),
) -> str:
    """Return how many rows were left out and why, but for reasons that are allowed.

    ``columns`` has the names of the columns of labels, predictions and weights.
    """
    found = []
    explained = _EXPLAINED_OF_CLASSES if len(columns["prediction"]) > 1 else _EXPLAINED
    for reason in INVALID:
        count = sum(joint.invalid.get(reason, 0) for joint in joints.values())
        if count and reason not in allowed:
            names = columns[_COLUMN_OF[reason]]
            where = ", ".join(map(repr, names[:_NAMED])) + (", …" if names[_NAMED:] else "")
            column = "column" if len(names) == 1 else "columns"
            found.append(f"{count:,} with a {reason} ({explained[reason]}) in {column} {where}")
    return ", ".join(found)
