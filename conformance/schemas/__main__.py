"""`python -m conformance.schemas`: write the schema files anew."""

from conformance.schemas import write_all

write_all()
