from bioptimus_jax.api.adapting import adapt as adapt
from bioptimus_jax.api.applying import Predictor as Predictor
from bioptimus_jax.api.applying import predict as predict
from bioptimus_jax.api.embedding import embed as embed
from bioptimus_jax.api.finetuning import finetune as finetune
from bioptimus_jax.api.masking import Collator as Collator
from bioptimus_jax.api.masking import mask as mask
from bioptimus_jax.api.measuring import difficulty as difficulty
from bioptimus_jax.api.measuring import score as score
from bioptimus_jax.api.running import results as results
from bioptimus_jax.api.vocabulary import add_words as add_words
from bioptimus_jax.api.vocabulary import replace_vocabulary as replace_vocabulary
from bioptimus_jax.api.vocabulary import train_vocabulary as train_vocabulary
from bioptimus_jax.errors import ConfigError as ConfigError
from bioptimus_jax.errors import InputError as InputError

__all__: list[str]
__version__: str
