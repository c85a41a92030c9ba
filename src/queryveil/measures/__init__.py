"""Measures of what a release keeps and of what it gives away, one file each."""

from queryveil.measures.distribution import Distribution, distribution
from queryveil.measures.generalization import generalization_loss, ncp, transaction_density
from queryveil.measures.labelled import FBeta, f_beta
from queryveil.measures.linkage import record_linkage
from queryveil.measures.loss import UserClusters, cluster_retention, information_loss, user_clusters
from queryveil.measures.own import own_queries
from queryveil.measures.random_groups import AboveRandom
from queryveil.measures.retention import Kept, Retention, retention
from queryveil.measures.srp import ProfileRetention, Srp, profile_retention, separating_level, srp
from queryveil.measures.tasks import Task, tasks

__all__ = [
    "AboveRandom",
    "Distribution",
    "FBeta",
    "Kept",
    "ProfileRetention",
    "Retention",
    "Srp",
    "Task",
    "UserClusters",
    "cluster_retention",
    "distribution",
    "f_beta",
    "generalization_loss",
    "information_loss",
    "ncp",
    "own_queries",
    "profile_retention",
    "record_linkage",
    "retention",
    "separating_level",
    "srp",
    "tasks",
    "transaction_density",
    "user_clusters",
]
