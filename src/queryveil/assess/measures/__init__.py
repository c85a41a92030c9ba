"""Measures of what a release keeps and of what it gives away, one file each."""

from queryveil.assess.measures.distribution import Distribution, distribution
from queryveil.assess.measures.generalization import generalization_loss, ncp, transaction_density
from queryveil.assess.measures.labelled import FBeta, f_beta
from queryveil.assess.measures.linkage import record_linkage
from queryveil.assess.measures.loss import UserClusters, cluster_retention, information_loss, user_clusters
from queryveil.assess.measures.own import own_queries
from queryveil.assess.measures.random_groups import AboveRandom
from queryveil.assess.measures.registry import GROUPS, MEASURES, Assessment, Measure, Value, measure
from queryveil.assess.measures.retention import Kept, Retention, retention
from queryveil.assess.measures.srp import ProfileRetention, Srp, profile_retention, separating_level, srp
from queryveil.assess.measures.tasks import Task, tasks
from queryveil.assess.measures.variance import VarianceRetention, nominal_variance, variance_retention

__all__ = [
    "GROUPS",
    "MEASURES",
    "AboveRandom",
    "Assessment",
    "Distribution",
    "FBeta",
    "Kept",
    "Measure",
    "ProfileRetention",
    "Retention",
    "Srp",
    "Task",
    "UserClusters",
    "Value",
    "VarianceRetention",
    "cluster_retention",
    "distribution",
    "f_beta",
    "generalization_loss",
    "information_loss",
    "measure",
    "ncp",
    "nominal_variance",
    "own_queries",
    "profile_retention",
    "record_linkage",
    "retention",
    "separating_level",
    "srp",
    "tasks",
    "transaction_density",
    "user_clusters",
    "variance_retention",
]
