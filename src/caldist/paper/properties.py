"""Which measure has which property, with evidence that can be run: the paper's Table 1."""

from __future__ import annotations

from caldist.measures.registry import all_measures
from caldist.paper.claims_by_measure import CLAIMS
from caldist.paper.table import Evidence, Property, PropertyError, PropertyTable

__all__ = ["Evidence", "Property", "PropertyError", "PropertyTable", "properties"]


def properties() -> PropertyTable:
    r"""Return which measure has which property, each cell with evidence that can be run.

    The paper's Table 1, for the measures of this package and with exponents. A measure μ is

    - *continuous* if :math:`\mu(f_n) \to \mu(f)` whenever :math:`E|f_n - f| \to 0`;
    - *complete* if it is 0 on perfectly calibrated predictors, and *sound* if only on those;
    - *robustly complete* with exponent c if :math:`\mu \le a\,\mathrm{dCE}^c`, *robustly sound*
      with exponent s if :math:`\mu \ge b\,\mathrm{dCE}^s`, and *(c, s)-consistent* if both. From
      predictions and labels alone no measure can have s < 2c;
    - of *predictions only* if it is a function of the distribution of prediction and label.

    **What it means.** A "no" is proved by its evidence, an instance. For a "yes" or an exponent
    the evidence tries the theorem's inequality, with its constant, on seeded instances, random
    ones and the paper's. Exponents are those that are proved; smaller s or larger c may hold.

    **Cost.** Nothing until evidence is run. ``.check()`` takes a few seconds.

    Returns
    -------
    PropertyTable
        Print it, write it with ``.to_markdown()`` or ``.to_frame()``, look up one cell with
        ``[measure, property]``, or run the evidence of all cells with ``.check()``.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, "A Unifying Theory of Distance from Calibration", 2023,
    Table 1 and section 4.

    Examples
    --------
    >>> import caldist
    >>> table = caldist.paper.properties()
    >>> table["smooth_ce", "consistent"].holds
    '(1, 2)'
    >>> cell = table["ece", "continuous"]
    >>> cell.holds, cell.kind
    (False, 'counter-example')
    >>> print(cell.evidence())
    predictors that converge, and their limit: E|f - g| = 1e-06, μ(f) = 0.5, μ(g) = 0
    """
    known = ("true_distance", *all_measures())
    entries = (entry for name in known if name in CLAIMS for entry in CLAIMS[name]())
    return PropertyTable(tuple(cell for entry in entries for cell in entry.cells()))
