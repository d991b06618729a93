from .assembly.conclusion import assemble as assemble
from .assembly.design import Proposal as Proposal
from .assembly.design import next_client as next_client
from .assembly.explanation import Certificate as Certificate
from .assembly.order import GlobalOrder as GlobalOrder
from .assembly.verdict import Verdict as Verdict
from .base.errors import InputError as InputError
from .base.errors import JigsawError as JigsawError
from .base.knowledge import Knowledge as Knowledge
from .base.order import PartialOrder as PartialOrder
from .client import Client as Client
from .estimator import BlockRecovery as BlockRecovery
from .fragment.fragment import Fragment as Fragment
from .fragment.fragment import Outcome as Outcome
from .fragment.reading import read_fragment as read_fragment
from .fragment.reading import save_fragment as save_fragment
from .moments import Moments as Moments
from .pipeline import recover as recover
from .pipeline import recover_fragment as recover_fragment
from .result.folder import load_result as load_result
from .result.result import Result as Result
from .study import Study as Study
from .study import read_client as read_client
from .study import read_study as read_study
from .truth import datasets as datasets
from .truth import metrics as metrics
from .truth import simulate as simulate

__version__: str
__all__: list[str]
