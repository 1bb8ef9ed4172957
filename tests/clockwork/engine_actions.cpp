// Does what the engine asks for.
#include "engine_host.hpp"
#include "links/pilot_messages.hpp"
#include "model/check.hpp"
#include "world.hpp"

namespace hpcbatch::clockwork {

template <class ToOnePilot>
void EngineHost::pass_on(const ToOnePilot& action) {
  after(order_of(action), [this, action] {
    if (const auto link = link_of(action.pilot)) say(action, outgoing(link));
  });
}

void EngineHost::send(const SendLeases& action) {
  const std::weak_ptr<PilotLink> decided_for = link_of(action.pilot);
  after(order_of(action), [this, action, decided_for] {
    must(saved_.apply(action));
    const auto link = decided_for.lock();
    if (!link || link != link_of(action.pilot)) return;
    for (const LeaseRun& run : runs_of(action.leases))
      *outgoing(link).add_start() = start_of(run, {});
    for (const SendLeases::Lease& lease : action.leases) {
      sent_[lease.attempt.epoch] = world_.clock.now();
    }
  });
}

std::function<void(const Event&)> EngineHost::answer() {
  return [this, life = life_](const Event& event) {
    if (life == life_) feed(event);
  };
}

void EngineHost::must(const std::string& wrong) {
  if (!wrong.empty()) world_.fail(wrong);
}

void EngineHost::perform(const Action& action) {
  const auto save = [this](const auto& a) {
    order_.add(a);
    look();
  };
  match(
      action,
      [&](const SaveArrays& a) {
        world_.users.saved(a);
        save(a);
      },
      [&](const SaveHold& a) { save(a); }, [&](const SaveTerms& a) { save(a); },
      [&](const SaveLeases& a) { save(a); }, [&](const DropLeases& a) { save(a); },
      [&](const SaveCancelled& a) { save(a); }, [&](const SavePermitted& a) { save(a); },
      [&](const SaveFailedAttempt& a) { save(a); }, [&](const SaveResult& a) { save(a); },
      [&](const SaveResults& a) { save(a); }, [&](const SaveArrayEnded& a) { save(a); },
      [&](const SaveRevived& a) { save(a); }, [&](const SaveAllocation& a) { save(a); },
      [&](const SaveKeep& a) { save(a); }, [&](const SaveReader& a) { save(a); },
      [&](const AnswerSubmit& a) {
        after(order_of(a), [this, a] { world_.users.accepted(a.request, a.ids); });
      },
      [&](const AnswerRefused& a) { world_.users.refused(a.request, a.text); },
      [&](const AnswerCount& a) {
        after(order_of(a), [this, a] { world_.users.counted(a.request); });
      },
      [&](const TellEnded& a) { after(order_of(a), [this, a] { world_.users.told(a.array); }); },
      [&](const SendLeases& a) { send(a); }, [&](const RecallLeases& a) { pass_on(a); },
      [&](const KillAttempt& a) {
        world_.files.stop(a.attempt, answer());
        pass_on(a);
      },
      [&](const AcknowledgeResults& a) {
        after(order_of(a), [this, a] {
          must(saved_.apply(a));
          if (const auto link = link_of(a.pilot)) say(a, outgoing(link));
        });
      },
      [&](const PermitPublish& a) { pass_on(a); }, [&](const WelcomePilot& a) { welcome(a); },
      [&](const ConfirmPilot& a) {
        after(order_of(a), [this, a] {
          const auto link = link_of(a.pilot);
          if (link && link->incarnation == a.incarnation) say(a, outgoing(link));
        });
      },
      [&](const EndPilot& a) { pass_on(a); }, [&](const StayPilot& a) { pass_on(a); },
      [&](const FencePilot& a) { fence(a); },
      [&](const StageIn& a) { after(order_of(a), [this, a] { world_.files.bring(a, answer()); }); },
      [&](const OpenAllocation& a) {
        after(order_of(a), [this, a] {
          const Shape* shape = engine_->sites().shape_of(a.allocation);
          if (!shape) return;
          world_.batch.submit(a, *shape, answer());
        });
      },
      [&](const CancelAllocation& a) { world_.batch.cancel(a); },
      [&](const PollSite& a) { world_.batch.poll(a.site, answer()); },
      [&](const LookAtQueue& a) {
        QueueForeseen blind{.site = a.site};
        blind.is_impossible = true;
        answer()(blind);
      },
      [&](const ReadOutbox& a) {
        world_.batch.read_outbox(a, [this, life = life_](const Event& read) {
          if (life == life_) feed_outbox(std::get<OutboxRead>(read));
        });
      },
      [&](const ForgetAllocation& a) {
        after(order_of(a), [this, a] {
          must(saved_.apply(a));
          world_.batch.forget(a);
        });
      },
      [&](const EngineIdle& a) {
        after(order_of(a), [this] {
          stopping_ = true;
          after(WaitsFor::DiskAtOnce, [this] {
            for (const Noted& one : noted_at_end(*engine_, world_.clock.now())) record(one);
            die();
          });
        });
      });
}

void EngineHost::note(std::vector<Noted> noted) {
  for (Noted& one : noted) {
    switch (one.when) {
      case Noted::When::Now:
        record(one);
        break;
      case Noted::When::Written:
        after(WaitsFor::Written, [this, one = std::move(one)] { record(one); });
        break;
      case Noted::When::Durable:
        after(WaitsFor::Disk, [this, one = std::move(one)] { record(one); });
        break;
    }
  }
}

void EngineHost::record(const Noted& noted) {
  world_.record("engine/" + std::to_string(saved_.starts()), noted.what, noted.facts);
}

}  // namespace hpcbatch::clockwork
