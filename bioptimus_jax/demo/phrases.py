"""Sentence templates of the biomedical abstracts: what is typical of each class, and what is said of all.

`TYPICAL[kind]` are contexts that give a class away; `NEUTRAL` contexts fit everything, so that there only
the name decides. `{thing}` is any class, `{other}` a second one.
"""

TYPICAL = {
    'drug': (
        '{number} patients were treated with {drug} {dose} mg [daily|twice daily|for {number} weeks] .',
        'patients [received|were given] oral {drug} at a dose of {dose} mg .',
        '{drug} therapy [reduced|improved] symptoms in {percent} % of patients .',
        'the dose of {drug} was [increased|reduced] to {dose} mg per day .',
        'adverse effects of {drug} included nausea and [headache|rash|vomiting] .',
        'treatment with {drug} was [well tolerated|stopped early] .',
        'patients with {disease} were randomized to {drug} or placebo .',
        'oral {drug} and intravenous {drug} were compared in a double blind trial .',
        'the half life of {drug} in plasma was {number} hours .',
        '{drug} was prescribed for {disease} in {number} patients .',
    ),
    'disease': (
        'a diagnosis of {disease} was [confirmed|made] in {number} patients .',
        'patients with {disease} had a [higher|lower] mortality than controls .',
        '{disease} is a [rare|common|fatal] disorder of [children|adults] .',
        'the incidence of {disease} was {percent} % in this cohort .',
        'risk factors for {disease} include age and smoking .',
        'symptoms of {disease} [appeared|worsened] after {number} months .',
        '{number} children suffered from {disease} .',
        'mutations of {gene} cause {disease} in affected families .',
        'survival of patients with advanced {disease} was {number} months .',
        'the patient died of {disease} at the age of {number} years .',
    ),
    'gene': (
        'expression of {gene} was [increased|decreased] in tumour cells .',
        'the {gene} gene encodes a kinase of {number} residues .',
        'a mutation in {gene} was found in {number} families .',
        'knockdown of {gene} reduced the phosphorylation of {gene} .',
    ),
    'reagent': (
        'cells were washed in a buffer containing {number} mM {reagent} .',
        'samples were dissolved in {reagent} and stored at {number} degrees .',
        'the column was eluted with {reagent} at a flow rate of {number} ml .',
        '{reagent} was added to the culture medium as a solvent .',
    ),
    'protein': (
        'the binding of {protein} to its receptor was measured by western blot .',
        'recombinant {protein} was purified from lysates and separated on a gel .',
        '{protein} interacts with {gene} at the cell membrane .',
        'levels of secreted {protein} in the supernatant were determined by elisa .',
    ),
    'device': (
        'images were acquired with the {device} system ( version {number} ) .',
        'data were analyzed with the {device} software package .',
        'a {device} catheter was inserted under local guidance .',
        'the {device} sensor was calibrated before each recording .',
    ),
    'process': (
        'during {process} the cells divide and move apart .',
        '{process} is regulated by {gene} in growing embryos .',
        'the rate of {process} in culture was {number} events per hour .',
        'inhibition of {gene} blocked {process} at an early stage .',
    ),
    'measure': (
        'mean {measure} was {number} units at baseline and {number} at the end .',
        '{measure} was recorded every {number} minutes with a standard scale .',
        'a {measure} above {number} was taken as the normal limit .',
        'values of {measure} were normally distributed .',
    ),
    'organism': (
        'strains of {organism} were isolated from soil and grown on agar .',
        'the genome of {organism} was sequenced .',
        '{organism} colonies were counted after {number} hours of incubation .',
        'plates were inoculated with {organism} from river water .',
    ),
    'finding': (
        '{finding} was assessed by two blinded observers .',
        'measurements of {finding} were repeated after {number} days .',
        '{finding} was preserved in all animals .',
        'we quantified {finding} with a standard protocol .',
    ),
}
NEUTRAL = (
    '{thing} was [discussed|mentioned|described] in {number} of the reports .',
    'the role of {thing} remains [unclear|a matter of debate] .',
    'little is known about {thing} and {other} .',
    'we reviewed the literature on {thing} [from {number} centres|of the last {number} years] .',
    'the results for {thing} were [consistent|similar] in both groups .',
    '{thing} , {other} and {third} were [examined|considered] in this study .',
    'there was no relation between {thing} and {other} .',
    'further studies of {thing} are [needed|planned] .',
    'data on {thing} were available for {number} cases .',
    'a [recent|previous] report dealt with {thing} rather than {other} .',
    'both {thing} and {other} were associated with the outcome .',
    'our findings suggest that {thing} is [important|relevant] here .',
    'the second part of the study concerned {thing} .',
    'in contrast to {thing} , {other} was rarely [observed|noted] .',
)
PLAIN = (
    'the study was approved by the local ethics committee .',
    'a total of {number} [patients|subjects|animals] were included between {year} and {year} .',
    'differences were tested with a [t test|rank test] and p below 0.05 was significant .',
    'the median follow up was {number} months .',
    'this was a [prospective|retrospective|randomized] study at {number} hospitals .',
    'we conclude that larger trials are [needed|warranted] .',
    'the mean age was {number} years and {percent} % were [women|men] .',
    'blood samples were taken at baseline and after {number} weeks .',
)
TITLES = (
    '[effects|efficacy|safety] of {drug} in patients with {disease}',
    '{gene} and the [risk|course] of {disease}',
    '{drug} for the treatment of {disease} : a randomized trial',
    '{protein} and {reagent} in [cultured|isolated] cells',
    'the role of {process} in {organism}',
    '{measure} and {finding} : a study with the {device} system',
    '{disease} in [children|adults] : a review of {number} cases',
)
