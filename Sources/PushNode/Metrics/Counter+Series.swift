extension Counter {
    /// Where it is shown, with a value for each of the metric's labels; nil for what shows elsewhere.
    var series: (metric: Metric, labels: [any MetricLabel])? {
        switch self {
        case .received: (.received, [])
        case .foreign: (.foreign, [])
        case .ours: (.ours, [])
        case .duplicate: (.duplicates, [])
        case .registrationStored: (.handled, [KindLabel.registration, OutcomeLabel.stored])
        case .registrationEnded: (.handled, [KindLabel.registration, OutcomeLabel.ended])
        case .registrationRepeated: (.handled, [KindLabel.registration, OutcomeLabel.repeated])
        case .registrationMalformed: (.handled, [KindLabel.registration, OutcomeLabel.refusedMalformed])
        case .registrationOutdated: (.handled, [KindLabel.registration, OutcomeLabel.refusedVersion])
        case .registrationUnsupported: (.handled, [KindLabel.registration, OutcomeLabel.refusedTokenType])
        case .registrationRefused: (.handled, [KindLabel.registration, OutcomeLabel.refusedOther])
        case .queryAnswered: (.handled, [KindLabel.query, OutcomeLabel.answered])
        case .queryUnanswered: (.handled, [KindLabel.query, OutcomeLabel.nothingFound])
        case .requestTaken: (.handled, [KindLabel.request, OutcomeLabel.taken])
        case .topicKeyDerived: (.topicKeysDerived, [])
        case .requestAnswered: (.requestsAnswered, [])
        case .requestWhileOpen: (.requestsAnsweredAtOnce, [])
        case .notificationQueued: (.notificationsQueued, [])
        case .notificationAccepted: (.notificationsEnded, [NotificationEndLabel.accepted])
        case .notificationRefused: (.notificationsEnded, [NotificationEndLabel.refused])
        case .notificationExpired: (.notificationsEnded, [NotificationEndLabel.expired])
        case .notificationEvicted: (.notificationsEnded, [NotificationEndLabel.evicted])
        case .notificationDropped: (.notificationsEnded, [NotificationEndLabel.dropped])
        case .notificationUnreadable: (.notificationsEnded, [NotificationEndLabel.unreadable])
        case .notificationRetried: (.notificationsRetried, [])
        case .notificationUncounted: (.notificationsUncounted, [])
        // By class and status: Counters.posted.
        case .postFailed: nil
        case .gorushOpened: (.breakerOpened, [])
        case .tokenDead: (.tokenFailures, [TokenFailureLabel.dead])
        case .tokenDoubtful: (.tokenFailures, [TokenFailureLabel.doubtful])
        case .tokenOperatorsMistake: (.tokenFailures, [TokenFailureLabel.operatorsMistake])
        case .tokenFailedOtherwise: (.tokenFailures, [TokenFailureLabel.other])
        case .tokenFailureUnmatched: (.tokenFailuresSetAside, [SetAsideLabel.unmatched])
        case .tokenHeldOff: (.tokenFailuresSetAside, [SetAsideLabel.heldOff])
        case .tokenFailureStale: (.tokenFailuresSetAside, [SetAsideLabel.stale])
        case .tokenFailureRepeated: (.tokenFailuresSetAside, [SetAsideLabel.repeated])
        case .tokenFailureLost: (.tokenFailuresSetAside, [SetAsideLabel.lost])
        case .tokenRemoved: (.registrationsRemoved, [RemovalLabel.dead])
        case .tokenDisabled: (.registrationsRemoved, [RemovalLabel.inDoubt])
        case .feedbackReceived: (.feedback, [FeedbackLabel.taken])
        case .feedbackMalformed: (.feedback, [FeedbackLabel.malformed])
        case .feedbackForbidden: (.feedback, [FeedbackLabel.forbidden])
        case .feedbackShed: (.feedback, [FeedbackLabel.shed])
        case .answerPublished: (.answersPublished, [])
        case .answerLost: (.answersLost, [])
        case .answerRepeated: (.answersRepeated, [])
        case .answerConfirmed: (.answersChecked, [ConfirmationLabel.confirmed])
        case .answerUnconfirmed: (.answersChecked, [ConfirmationLabel.unconfirmed])
        case .answerUnchecked: (.answersChecked, [ConfirmationLabel.unchecked])
        case .gapFound: (.relayGaps, [])
        case .messageRecovered: (.relayRecovered, [])
        case .droppedOversized: (.dropped, [LossStageLabel.opening, LossReasonLabel.oversized])
        case .droppedVersion: (.dropped, [LossStageLabel.opening, LossReasonLabel.version])
        case .droppedUndecryptable: (.dropped, [LossStageLabel.opening, LossReasonLabel.undecryptable])
        case .droppedMalformedPayload: (.dropped, [LossStageLabel.opening, LossReasonLabel.malformedPayload])
        case .droppedUnsigned: (.dropped, [LossStageLabel.opening, LossReasonLabel.unsigned])
        case .shedWaitingQuery: (.dropped, [LossStageLabel.opening, LossReasonLabel.shedQuery])
        case .failedTopicKey: (.dropped, [LossStageLabel.opening, LossReasonLabel.storeFailed])
        case .segment: (.dropped, [LossStageLabel.reading, LossReasonLabel.segment])
        case .droppedMalformedEnvelope: (.dropped, [LossStageLabel.reading, LossReasonLabel.malformedEnvelope])
        case .droppedOtherKind: (.dropped, [LossStageLabel.reading, LossReasonLabel.otherKind])
        case .droppedEmpty: (.dropped, [LossStageLabel.reading, LossReasonLabel.empty])
        case .droppedBadSignature: (.dropped, [LossStageLabel.reading, LossReasonLabel.badSignature])
        case .droppedUnsealable: (.dropped, [LossStageLabel.reading, LossReasonLabel.unsealable])
        case .droppedMalformedMessage: (.dropped, [LossStageLabel.reading, LossReasonLabel.malformedMessage])
        case .droppedTooMany: (.dropped, [LossStageLabel.reading, LossReasonLabel.tooMany])
        case .droppedOldRequest: (.dropped, [LossStageLabel.reading, LossReasonLabel.tooOld])
        case .droppedNoMessageID: (.dropped, [LossStageLabel.reading, LossReasonLabel.noMessageID])
        case .shedQuery: (.dropped, [LossStageLabel.handling, LossReasonLabel.shedQuery])
        case .shedRequest: (.dropped, [LossStageLabel.handling, LossReasonLabel.shedRequest])
        case .failedStore: (.dropped, [LossStageLabel.handling, LossReasonLabel.storeFailed])
        }
    }

    /// A loss of a message that was opened.
    var isAfterOpening: Bool {
        if case LossStageLabel.opening? = series?.labels.first { false } else { true }
    }

    /// Its number among ``allCases``. An enumeration without payloads, of at most 256 cases, is one byte: the number of its case.
    var place: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}
