"""`signature_spec` under its former name: plug-ins of earlier versions import it from here."""

from reference_impl.views.signatures import signature_spec as signature_spec
